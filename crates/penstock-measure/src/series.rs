//! What changed over time: curves of values, and `series.parquet`.
//!
//! The file is in long form: `time_s, host, object, metric, value`, one row a sample, curve after curve in the order
//! they were begun, each in the order of time. The same series gives the same bytes: no creation time, a fixed
//! writer name, row groups of a fixed size.

mod dictionary;
mod quantity;
mod rows;

pub use quantity::{Instants, Quantity};

use dictionary::{Chunk, Content, Known, LONG_PAGE, Numbers, SHORT_PAGE};

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::sync::Arc;

/// One quantity over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// Machine; empty for what belongs to none.
    pub host: String,
    /// What on it: an app's or flow's name, `eth0`, `eth0 1:10`.
    pub object: String,
    /// Which quantity of it, with its unit: `throughput_bit_s`, `rtt_ms`, `backlog_bytes`.
    pub metric: String,
    /// Samples: seconds from the start of the run, value.
    pub points: Vec<(f64, f64)>,
}

/// All curves of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    curves: Vec<Curve>,
    /// Where each stands, by the hash of its names; one whose place is taken has the next that is free.
    index: BTreeMap<u64, usize>,
}

/// Why `series.parquet` cannot be written or read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesError(String);

impl std::fmt::Display for SeriesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "series.parquet: {}", self.0)
    }
}

impl std::error::Error for SeriesError {}

impl From<parquet::errors::ParquetError> for SeriesError {
    fn from(e: parquet::errors::ParquetError) -> SeriesError {
        SeriesError(e.to_string())
    }
}

const COLUMNS: [&str; 5] = ["time_s", "host", "object", "metric", "value"];

/// A field of a CSV file (RFC 4180).
fn quoted(text: &str) -> std::borrow::Cow<'_, str> {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
        false => text.into(),
    }
}

impl Series {
    /// No curves.
    pub fn new() -> Series {
        Series::default()
    }

    /// The number of a curve, begun if there is none of this name yet.
    pub fn curve(&mut self, host: &str, object: &str, metric: &str) -> usize {
        self.find(host, object, metric).unwrap_or_else(|free| {
            let (host, object, metric) = (host.to_owned(), object.to_owned(), metric.to_owned());
            self.curves.push(Curve { host, object, metric, points: Vec::new() });
            self.index.insert(free, self.curves.len() - 1);
            self.curves.len() - 1
        })
    }

    /// The number of a curve, or the place in the index that it would have.
    fn find(&self, host: &str, object: &str, metric: &str) -> Result<usize, u64> {
        let mut hasher = std::hash::DefaultHasher::new();
        (host, object, metric).hash(&mut hasher);
        let mut place = hasher.finish();
        while let Some(&at) = self.index.get(&place) {
            let curve = &self.curves[at];
            if curve.metric == metric && curve.object == object && curve.host == host {
                return Ok(at);
            }
            place = place.wrapping_add(1);
        }
        Err(place)
    }

    /// Adds a sample to a curve by its number.
    pub fn push(&mut self, curve: usize, time_s: f64, value: f64) {
        self.curves[curve].points.push((time_s, value));
    }

    /// Adds samples to a curve, begun if there is none of this name yet. Without samples nothing is begun.
    pub fn extend(&mut self, host: &str, object: &str, metric: &str, points: Vec<(f64, f64)>) {
        if points.is_empty() {
            return;
        }
        let curve = self.curve(host, object, metric);
        let all = &mut self.curves[curve].points;
        if all.is_empty() {
            *all = points;
        } else {
            all.extend(points);
        }
    }

    /// Adds a sample to a curve by its name.
    pub fn add(&mut self, host: &str, object: &str, metric: &str, time_s: f64, value: f64) {
        let curve = self.curve(host, object, metric);
        self.push(curve, time_s, value);
    }

    /// All curves in the order they were begun.
    pub fn curves(&self) -> &[Curve] {
        &self.curves
    }

    /// The samples of one curve; empty when there is none of this name.
    pub fn points(&self, host: &str, object: &str, metric: &str) -> &[(f64, f64)] {
        self.find(host, object, metric).map_or(&[], |at| &self.curves[at].points)
    }

    /// Writes the series as text, the columns of the Parquet file with a comma between; curve after curve. Numbers are the shortest that read back
    /// as the same.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_csv(&self, to: &mut impl Write) -> std::io::Result<()> {
        writeln!(to, "{}", COLUMNS.join(","))?;
        for curve in &self.curves {
            let names = [&curve.host, &curve.object, &curve.metric].map(|name| quoted(name)).join(",");
            for (time, value) in &curve.points {
                writeln!(to, "{time},{names},{value}")?;
            }
        }
        Ok(())
    }

    /// The series as the bytes of a Parquet file.
    ///
    /// # Errors
    /// When the writer refuses (it does not for any series that fits memory).
    pub fn to_parquet(&self) -> Result<Vec<u8>, SeriesError> {
        let mut bytes = Vec::new();
        self.write_parquet(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the series as a Parquet file: a row group at a time, so that the memory for it does not grow with the series.
    ///
    /// # Errors
    /// When `to` cannot be written.
    pub fn write_parquet(&self, to: impl Write + Send) -> Result<(), SeriesError> {
        let properties = WriterProperties::builder()
            .set_created_by("penstock".to_owned())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            // Nobody looks for a row by its number, and half of the columns would have no index.
            .set_offset_index_disabled(true)
            .set_max_row_group_row_count(None)
            .build();
        let schema = Arc::new(schema()?);
        let columns = SchemaDescriptor::new(schema.clone());
        let mut file = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
        for pieces in self.groups(GROUP_ROWS) {
            let mut group = file.next_row_group()?;
            for i in 0..COLUMNS.len() {
                let descr = columns.column(i);
                let column = match i {
                    0 => times(descr, &pieces)?,
                    1 => names(descr, &pieces, |c| &c.host)?,
                    2 => names(descr, &pieces, |c| &c.object)?,
                    3 => names(descr, &pieces, |c| &c.metric)?,
                    _ => doubles(descr, &pieces, |p| p.1)?,
                };
                group.append_column(&column.bytes, column.close)?;
            }
            group.close()?;
        }
        file.close()?;
        Ok(())
    }

    /// The curves cut into groups of at most so many rows; one group where there are none.
    fn groups(&self, most: usize) -> Vec<Vec<Piece<'_>>> {
        let mut groups = vec![Vec::new()];
        let mut room = most;
        for curve in &self.curves {
            let mut points = &curve.points[..];
            while !points.is_empty() {
                if room == 0 {
                    groups.push(Vec::new());
                    room = most;
                }
                let (now, later) = points.split_at(points.len().min(room));
                room -= now.len();
                points = later;
                groups.last_mut().expect("there is one").push(Piece { curve, points: now });
            }
        }
        groups
    }

    /// Reads the bytes of a Parquet file that [`Series::to_parquet`] made, or of the same columns.
    ///
    /// # Errors
    /// When it is not a Parquet file, or its columns are others.
    pub fn from_parquet(bytes: Vec<u8>) -> Result<Series, SeriesError> {
        // The reader takes the lengths in a file at their word, and panics at some that are wrong.
        let damaged = || SeriesError("it is damaged: the Parquet reader failed".to_owned());
        quietly(move || Series::read(bytes)).unwrap_or_else(|_| Err(damaged()))
    }

    fn read(bytes: Vec<u8>) -> Result<Series, SeriesError> {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes))?;
        let found: Vec<String> = {
            let schema = reader.metadata().file_metadata().schema();
            schema.get_fields().iter().map(|f| f.name().to_owned()).collect()
        };
        if found != COLUMNS {
            return Err(SeriesError(format!(
                "columns are {} instead of {}",
                found.join(", "),
                COLUMNS.join(", ")
            )));
        }
        let rows = reader.metadata().file_metadata().num_rows();
        if !(0..=MAX_ROWS).contains(&rows) {
            return Err(SeriesError(format!("it says that it has {rows} rows; the maximum is {MAX_ROWS}")));
        }
        let mut series = Series::new();
        rows::read(&reader, rows, &mut series)?;
        Ok(series)
    }
}

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// Most different numbers of a group that are written as a dictionary: as the Parquet writer has it, 1 MiB of them.
const MOST_KNOWN: usize = (1 << 20) / 8;

/// What a row group has of a curve.
struct Piece<'a> {
    curve: &'a Curve,
    points: &'a [(f64, f64)],
}

/// A column of names. It has no statistics: the least and the greatest name tell a reader nothing.
fn names(descr: ColumnDescPtr, pieces: &[Piece<'_>], name: fn(&Curve) -> &str) -> Result<Chunk, SeriesError> {
    let (mut plain, mut known, mut numbers) = (Vec::new(), BTreeMap::new(), Numbers::default());
    for piece in pieces {
        let (name, next) = (name(piece.curve), known.len() as u32);
        let number = *known.entry(name).or_insert_with(|| {
            plain.extend_from_slice(&(name.len() as u32).to_le_bytes());
            plain.extend_from_slice(name.as_bytes());
            next
        });
        numbers.push(number, piece.points.len());
    }
    let count = known.len();
    dictionary::column(
        descr,
        Content {
            plain: &plain,
            count,
            numbers: &numbers,
            page_rows: LONG_PAGE,
            rest: &[],
            statistics: None,
        },
    )
}

/// The column of times. Most curves have the times of the one before, so the numbers are known but for a look.
fn times(descr: ColumnDescPtr, pieces: &[Piece<'_>]) -> Result<Chunk, SeriesError> {
    let (mut known, mut numbers) = (Known::new(MOST_KNOWN), Numbers::default());
    let (mut bounds, mut begin) = (Bounds::default(), 0);
    for piece in pieces {
        let mut points = piece.points;
        while let Some(first) = points.first() {
            // As many as follow each other from where the curve before began, or from where the search says.
            let mut from = begin;
            if known.values().get(from).map(|t| t.to_bits()) != Some(first.0.to_bits()) {
                match known.number(first.0) {
                    Some((number, _)) => from = number as usize,
                    None => return doubles(descr, pieces, |p| p.0),
                }
                bounds.add(first.0);
            }
            let follows = known.values()[from..].iter().zip(points);
            let count = follows.take_while(|(t, p)| t.to_bits() == p.0.to_bits()).count();
            numbers.rise(from as u32, count);
            if points.len() == piece.points.len() {
                begin = from;
            }
            points = &points[count..];
        }
    }
    dictionary::column(
        descr,
        Content {
            plain: &known.plain(),
            count: known.values().len(),
            numbers: &numbers,
            page_rows: LONG_PAGE,
            rest: &[],
            statistics: Some(bounds.statistics()),
        },
    )
}

/// The column of other numbers.
fn doubles(
    descr: ColumnDescPtr,
    pieces: &[Piece<'_>],
    of: fn(&(f64, f64)) -> f64,
) -> Result<Chunk, SeriesError> {
    let rows: usize = pieces.iter().map(|piece| piece.points.len()).sum();
    let (mut known, mut numbers) = (Known::new(rows.min(MOST_KNOWN)), Numbers::default());
    let (mut bounds, mut rest) = (Bounds::default(), Vec::new());
    let mut before = None;
    for value in pieces.iter().flat_map(|piece| piece.points).map(of) {
        // A value that no row has had yet finds the dictionary full: from there on all are written out.
        if !rest.is_empty() {
            bounds.add(value);
            rest.extend_from_slice(&value.to_le_bytes());
            continue;
        }
        if let Some((bits, number)) = before
            && bits == value.to_bits()
        {
            numbers.push(number, 1);
            continue;
        }
        match known.number(value) {
            Some((number, new)) => {
                if new {
                    bounds.add(value);
                }
                numbers.push(number, 1);
                before = Some((value.to_bits(), number));
            }
            None => {
                bounds.add(value);
                rest.extend_from_slice(&value.to_le_bytes());
            }
        }
    }
    dictionary::column(
        descr,
        Content {
            plain: &known.plain(),
            count: known.values().len(),
            numbers: &numbers,
            page_rows: SHORT_PAGE,
            rest: &rest,
            statistics: Some(bounds.statistics()),
        },
    )
}

/// The least and the greatest of numbers; what is no number counts with nothing.
#[derive(Default)]
struct Bounds(Option<(f64, f64)>);

impl Bounds {
    #[inline]
    fn add(&mut self, value: f64) {
        if !value.is_nan() {
            let (least, greatest) = self.0.unwrap_or((value, value));
            self.0 = Some((least.min(value), greatest.max(value)));
        }
    }
    /// A zero is the least or the greatest whatever its sign: parquet.thrift, `ColumnOrder`.
    fn statistics(&self) -> Statistics {
        let (least, greatest) = self.0.unzip();
        let zero = |signed: f64| move |v: f64| if v == 0.0 { signed } else { v };
        Statistics::double(least.map(zero(-0.0)), greatest.map(zero(0.0)), None, Some(0), false)
    }
}

/// Most rows that are read: a few small pages may stand for any number.
const MAX_ROWS: i64 = 50_000_000;

/// Runs it; a panic is an answer and prints nothing.
fn quietly<T>(work: impl FnOnce() -> T + std::panic::UnwindSafe) -> std::thread::Result<T> {
    thread_local!(static QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let done = std::panic::catch_unwind(work);
    QUIET.set(false);
    done
}

fn schema() -> Result<Type, SeriesError> {
    let column = |name: &str| {
        let text = !matches!(name, "time_s" | "value");
        let physical = if text { Physical::BYTE_ARRAY } else { Physical::DOUBLE };
        let converted = if text { ConvertedType::UTF8 } else { ConvertedType::NONE };
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_converted_type(converted)
            .build()
            .map(Arc::new)
    };
    let fields = COLUMNS.iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;
    Ok(Type::group_type_builder("series").with_fields(fields).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Series {
        let mut s = Series::new();
        for i in 0..1000 {
            s.add("u5", "u5 iperf", "throughput_bit_s", f64::from(i) * 0.1, f64::from(i % 7) * 1e6);
            s.add("u4", "eth0 1:10", "backlog_bytes", f64::from(i) * 0.1, f64::from(i));
        }
        s
    }

    #[test]
    fn parquet_gives_back_what_was_put_in_and_the_same_bytes() {
        let s = sample();
        let bytes = s.to_parquet().unwrap();
        assert_eq!(bytes, s.to_parquet().unwrap());
        assert_eq!(Series::from_parquet(bytes).unwrap(), s);
        assert_eq!(s.points("u4", "eth0 1:10", "backlog_bytes").len(), 1000);
        assert!(s.points("u4", "eth0 1:20", "backlog_bytes").is_empty());
    }

    #[test]
    fn an_empty_series_is_a_file_too() {
        let bytes = Series::new().to_parquet().unwrap();
        assert_eq!(Series::from_parquet(bytes).unwrap(), Series::new());
    }

    #[test]
    fn row_groups_cut_curves_and_nothing_is_lost() {
        let mut s = Series::new();
        for (host, rows) in [("a", 5), ("b", 0), ("c", 12), ("d", 3)] {
            let curve = s.curve(host, "", "x");
            (0..rows).for_each(|i| s.push(curve, f64::from(i), 1.0));
        }
        let cut: Vec<Vec<usize>> =
            s.groups(8).iter().map(|g| g.iter().map(|p| p.points.len()).collect()).collect();
        assert_eq!(cut, [vec![5, 3], vec![8], vec![1, 3]]);
        assert_eq!(Series::new().groups(8).len(), 1);
    }

    #[test]
    fn many_rows_are_several_groups_and_the_memory_for_names_is_their_own() {
        let mut s = Series::new();
        let rows = GROUP_ROWS as u32 / 2 + 7;
        for name in ["a name of some length", "another name", "a third one"] {
            let curve = s.curve(name, "eth0", "backlog_bytes");
            (0..rows).for_each(|i| s.push(curve, f64::from(i) * 0.01, f64::from(i % 5)));
        }
        let bytes = s.to_parquet().unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        for group in reader.metadata().row_groups() {
            for i in 1..4 {
                let size = group.column(i).compressed_size();
                assert!(size < 150, "column {i} takes {size} bytes");
            }
        }
        assert_eq!(Series::from_parquet(bytes).unwrap(), s);
    }

    /// More values than the dictionary holds, times of which none comes twice, what is no number, both zeros.
    #[test]
    fn a_full_dictionary_is_followed_by_the_rest() {
        let mut s = Series::new();
        let curve = s.curve("a", "eth0", "backlog_bytes");
        let rows = MOST_KNOWN as u32 * 2 + 77;
        (0..rows).for_each(|i| s.push(curve, f64::from(i) / 7.0, f64::from(i % (rows - 50)) - 5.0));
        let other = s.curve("b", "eth0", "backlog_bytes");
        (0..3u32).for_each(|i| s.push(other, 0.5, [0.0, -0.0, f64::INFINITY][i as usize]));
        let bytes = s.to_parquet().unwrap();
        let back = Series::from_parquet(bytes.clone()).unwrap();
        assert_eq!(back, s);
        assert!(back.points("b", "eth0", "backlog_bytes")[1].1.is_sign_negative());
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let bounds = |i: usize| match reader.metadata().row_group(0).column(i).statistics() {
            Some(Statistics::Double(s)) => (*s.min_opt().unwrap(), *s.max_opt().unwrap()),
            other => panic!("{other:?}"),
        };
        assert_eq!(bounds(0), (0.0, f64::from(rows - 1) / 7.0));
        assert_eq!(bounds(4), (-5.0, f64::INFINITY));
    }

    #[test]
    fn strangers_are_refused() {
        assert!(Series::from_parquet(b"PAR1 and nothing else".to_vec()).is_err());
        assert!(Series::from_parquet(Vec::new()).is_err());
    }

    #[test]
    fn what_is_damaged_is_refused_and_panics_nowhere() {
        let mut s = Series::new();
        for i in 0..40 {
            s.add("a", "eth0", "backlog_bytes", f64::from(i), f64::from(i % 3));
        }
        let whole = s.to_parquet().unwrap();
        let mut refused = 0;
        // Every byte changed in four ways, and every place cut.
        for at in 0..whole.len() {
            for new in [whole[at] ^ 1, whole[at] ^ 0x80, 0xff, 0] {
                let mut bytes = whole.clone();
                bytes[at] = new;
                refused += usize::from(Series::from_parquet(bytes).is_err());
            }
            assert!(Series::from_parquet(whole[..at].to_vec()).is_err());
        }
        assert!(refused > whole.len(), "{refused} of {}", whole.len());
    }

    proptest! {
        #[test]
        fn any_series_comes_back(rows in proptest::collection::vec(
            ("[a-z]{0,3}", "[a-z ]{0,3}", "[a-z_]{1,3}", -1e9f64..1e9, -1e9f64..1e9), 0..200)) {
            let mut s = Series::new();
            for (host, object, metric, t, v) in &rows {
                s.add(host, object, metric, *t, *v);
            }
            prop_assert_eq!(Series::from_parquet(s.to_parquet().unwrap()).unwrap(), s);
        }
    }
}
