//! Columns of `series.parquet`: a dictionary, numbers into it, and what comes when the dictionary is full.
//!
//! The Parquet writer looks at each row by itself, at several hundred instructions each. Of a name the same value stands in every row of a curve: here it is a run,
//! which is written by its length. Times mostly follow each other as in the curve before: their numbers do too, and a whole curve is one entry. Other values are
//! looked up in a table of their bits.
//!
//! Follows: the Parquet format, `Encodings.md`: PLAIN for dictionaries and for what found no place in one, RLE / bit-packing hybrid for the numbers.

use super::SeriesError;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// Fewest equal numbers that are written as a run.
const LEAST_RUN: usize = 8;
/// Most rows of a page where most are runs.
pub(super) const LONG_PAGE: usize = 1 << 20;
/// Most rows of a page of values: those of the first pages are few, and take few bits.
pub(super) const SHORT_PAGE: usize = 20_000;
/// Bytes of a page without numbers: 1 MiB, as the Parquet writer has it.
const PLAIN_BYTES: usize = 1 << 20;

/// Values that follow each other in the numbers.
#[derive(Clone, Copy)]
struct Run {
    number: u32,
    times: u32,
    /// Each is one more than the one before it, in place of the same.
    rises: bool,
}

/// Numbers into a dictionary, as runs.
#[derive(Default)]
pub(super) struct Numbers {
    runs: Vec<Run>,
    rows: usize,
}

impl Numbers {
    /// Adds a number so many times.
    #[inline]
    pub(super) fn push(&mut self, number: u32, times: usize) {
        self.rows += times;
        match self.runs.last_mut() {
            _ if times == 0 => {}
            Some(run) if run.number == number && !run.rises => run.times += times as u32,
            _ => self.runs.push(Run { number, times: times as u32, rises: false }),
        }
    }
    /// Adds so many numbers, each one more than the one before.
    pub(super) fn rise(&mut self, from: u32, count: usize) {
        // The ends may be part of runs of equal numbers.
        self.push(from, count.min(1));
        if count > 2 {
            self.rows += count - 2;
            self.runs.push(Run { number: from + 1, times: count as u32 - 2, rises: true });
        }
        if count > 1 {
            self.push(from + count as u32 - 1, 1);
        }
    }
    /// The pages' contents, each of at most `most` rows, with those. Numbers take as many bits as the greatest of their page.
    fn pages(&self, most: usize) -> Vec<(Vec<u8>, usize)> {
        let (mut pages, mut page, mut rows) = (Vec::new(), Vec::<Run>::new(), 0);
        for &run in &self.runs {
            let mut left = run;
            while left.times > 0 {
                let times = left.times.min((most - rows) as u32);
                page.push(Run { times, ..left });
                left.times -= times;
                left.number += if left.rises { times } else { 0 };
                rows += times as usize;
                if rows == most {
                    pages.push((Hybrid::of(&page), rows));
                    page.clear();
                    rows = 0;
                }
            }
        }
        if rows > 0 {
            pages.push((Hybrid::of(&page), rows));
        }
        pages
    }
}

/// Numbers of values that are met one after the other: a table of places, found by the values' bits.
pub(super) struct Known {
    /// The values in their order.
    values: Vec<f64>,
    /// Number + 1 of what stands at a place, 0 where nothing does; at least half of them are free.
    places: Vec<u32>,
    most: usize,
}

impl Known {
    /// A table for at most so many different values.
    pub(super) fn new(most: usize) -> Known {
        Known { values: Vec::new(), places: vec![0; (2 * most).next_power_of_two().max(2)], most }
    }
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }
    /// The number of a value, and whether it is new; `None` where there is no room for it.
    #[inline]
    pub(super) fn number(&mut self, value: f64) -> Option<(u32, bool)> {
        let bits = value.to_bits();
        let mask = self.places.len() - 1;
        // Knuth, The Art of Computer Programming, volume 3, section 6.4: the bits times 2^64 over the golden ratio, of which the upper half is mixed best.
        let mut place = (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            match self.places[place] {
                0 if self.values.len() >= self.most => return None,
                0 => {
                    self.values.push(value);
                    self.places[place] = self.values.len() as u32;
                    return Some((self.values.len() as u32 - 1, true));
                }
                next if self.values[next as usize - 1].to_bits() == bits => return Some((next - 1, false)),
                _ => place = (place + 1) & mask,
            }
        }
    }
    /// The values, one behind the other.
    pub(super) fn plain(&self) -> Vec<u8> {
        self.values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }
}

/// One page of numbers: runs by their length, others in groups of eight by their bits.
struct Hybrid {
    bytes: Vec<u8>,
    width: u32,
    /// Not written yet: numbers that stand in no run.
    single: Vec<u32>,
}

impl Hybrid {
    /// The bytes of a page of these.
    fn of(runs: &[Run]) -> Vec<u8> {
        let last = |run: &Run| run.number + if run.rises { run.times - 1 } else { 0 };
        let greatest = runs.iter().map(last).max().unwrap_or(0);
        let width = u32::BITS - greatest.leading_zeros();
        let mut page = Hybrid { bytes: vec![width as u8], width, single: Vec::new() };
        for run in runs {
            match run.rises {
                true => page.single.extend(run.number..run.number + run.times),
                false => page.add(run.number, run.times as usize),
            }
        }
        page.write_single();
        page.bytes
    }
    fn add(&mut self, number: u32, mut times: usize) {
        // A group is full before a run begins.
        let missing = (8 - self.single.len() % 8) % 8;
        if times >= missing + LEAST_RUN {
            self.single.resize(self.single.len() + missing, number);
            times -= missing;
            self.write_single();
            self.varint((times as u64) << 1);
            let bytes = number.to_le_bytes();
            self.bytes.extend_from_slice(&bytes[..self.width.div_ceil(8) as usize]);
        } else {
            self.single.resize(self.single.len() + times, number);
        }
    }
    fn write_single(&mut self) {
        if self.single.is_empty() {
            return;
        }
        let groups = self.single.len().div_ceil(8);
        self.varint((groups as u64) << 1 | 1);
        let (mut bits, mut held) = (0u64, 0);
        let width = self.width;
        self.single.resize(groups * 8, 0);
        for number in self.single.drain(..) {
            bits |= u64::from(number) << held;
            held += width;
            if held >= 32 {
                self.bytes.extend_from_slice(&(bits as u32).to_le_bytes());
                bits >>= 32;
                held -= 32;
            }
        }
        // Eight numbers are whole bytes.
        self.bytes.extend_from_slice(&bits.to_le_bytes()[..held as usize / 8]);
    }
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }
}

/// A column that is ready to be put into a row group.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// What a column holds.
pub(super) struct Content<'a> {
    /// The dictionary's values, one behind the other, and their number.
    pub(super) plain: &'a [u8],
    pub(super) count: usize,
    /// Numbers of the rows, and how many rows a page of them has.
    pub(super) numbers: &'a Numbers,
    pub(super) page_rows: usize,
    /// Rows behind those that found no place in the dictionary: 8 bytes each.
    pub(super) rest: &'a [u8],
    pub(super) statistics: Option<Statistics>,
}

/// Makes a column.
pub(super) fn column(descr: ColumnDescPtr, content: Content<'_>) -> Result<Chunk, SeriesError> {
    let Content { plain, count, numbers, page_rows, rest, statistics } = content;
    let mut sum = Sum::default();
    let mut sink = TrackedWrite::new(Vec::new());
    let mut writer = SerializedPageWriter::new(&mut sink);
    let encoding = Encoding::PLAIN;
    let buf = compress(plain)?;
    let page = Page::DictionaryPage { buf, num_values: count as u32, encoding, is_sorted: false };
    let spec = writer.write_page(CompressedPage::new(page, plain.len()))?;
    sum.add(&spec);
    let (dictionary, mut first) = (spec.offset, None);
    let mut data = |bytes: &[u8], rows: usize, encoding| -> Result<(), SeriesError> {
        let page = Page::DataPage {
            buf: compress(bytes)?,
            num_values: rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let spec = writer.write_page(CompressedPage::new(page, bytes.len()))?;
        sum.add(&spec);
        first = first.or(Some(spec.offset));
        Ok(())
    };
    let pages = numbers.pages(page_rows);
    for (bytes, rows) in &pages {
        data(bytes, *rows, Encoding::RLE_DICTIONARY)?;
    }
    let plain_pages = rest.chunks(PLAIN_BYTES);
    let plain_count = plain_pages.len() as i32;
    for bytes in plain_pages {
        data(bytes, bytes.len() / 8, Encoding::PLAIN)?;
    }
    writer.close()?;
    let stats = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
    let mut encoding_stats = vec![
        stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
        stats(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, pages.len() as i32),
    ];
    if plain_count > 0 {
        encoding_stats.push(stats(PageType::DATA_PAGE, Encoding::PLAIN, plain_count));
    }
    let rows = numbers.rows + rest.len() / 8;
    let mut metadata = ColumnChunkMetaData::builder(descr)
        .set_compression_codec(Compression::SNAPPY.into())
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_page_encoding_stats(encoding_stats)
        .set_total_compressed_size(sum.compressed as i64)
        .set_total_uncompressed_size(sum.uncompressed as i64)
        .set_num_values(rows as i64)
        .set_dictionary_page_offset(Some(dictionary as i64))
        .set_data_page_offset(first.unwrap_or(dictionary) as i64);
    if let Some(statistics) = statistics {
        metadata = metadata.set_statistics(statistics);
    }
    let close = ColumnCloseResult {
        bytes_written: sum.compressed as u64,
        rows_written: rows as u64,
        metadata: metadata.build()?,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok(Chunk { bytes: sink.into_inner()?.into(), close })
}

#[derive(Default)]
struct Sum {
    compressed: usize,
    uncompressed: usize,
}

impl Sum {
    fn add(&mut self, spec: &PageWriteSpec) {
        self.compressed += spec.compressed_size;
        self.uncompressed += spec.uncompressed_size;
    }
}

fn compress(bytes: &[u8]) -> Result<Bytes, SeriesError> {
    let packed = snap::raw::Encoder::new().compress_vec(bytes);
    packed.map(Bytes::from).map_err(|e| SeriesError(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(numbers: &[(u32, usize)]) -> Vec<u8> {
        let mut all = Numbers::default();
        numbers.iter().for_each(|&(number, times)| all.push(number, times));
        let pages = all.pages(LONG_PAGE);
        assert_eq!(pages.len(), 1);
        pages[0].0.clone()
    }

    #[test]
    fn the_format_s_own_example_is_packed_so() {
        // Encodings.md: 0 to 7 of three bits are 10001000 11000110 11111010.
        let each: Vec<(u32, usize)> = (0..8).map(|n| (n, 1)).collect();
        assert_eq!(page(&each), [3, 0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn runs_are_written_by_their_length() {
        assert_eq!(page(&[(300, 100)]), [9, 0xc8, 0x01, 0x2c, 0x01]);
        // What is equal in curves that follow each other is one run.
        assert_eq!(page(&[(1, 5), (1, 5)]), [1, 20, 1]);
        // The group before a run is filled from it.
        assert_eq!(page(&[(1, 1), (2, 20)]), [2, 0b11, 0b1010_1001, 0b1010_1010, 26, 2]);
        // Of one value no bits are written.
        assert_eq!(page(&[(0, 70)]), [0, 0x8c, 0x01]);
    }

    #[test]
    fn numbers_that_rise_are_written_as_one_by_one() {
        for offset in [0, 100, 5000, 70_000, 3 << 30] {
            let (mut each, mut whole) = (Numbers::default(), Numbers::default());
            for (from, count) in [(0, 100), (3, 1), (3, 60), (62, 2), (63, 1), (63, 30), (5, 0), (92, 1)] {
                let from = offset + from;
                (from..from + count).for_each(|n| each.push(n, 1));
                whole.rise(from, count as usize);
            }
            assert_eq!(each.rows, whole.rows);
            for most in [LONG_PAGE, 50, 7] {
                assert_eq!(each.pages(most), whole.pages(most), "from {offset}, {most} rows a page");
            }
        }
    }

    #[test]
    fn values_are_known_by_their_bits_until_the_table_is_full() {
        let mut known = Known::new(5);
        let met = [1.5, 0.0, 1.5, -0.0, f64::NAN, 0.0, f64::NAN, 7.0, -7.0, 7.0];
        let numbers: Vec<Option<(u32, bool)>> = met.iter().map(|&v| known.number(v)).collect();
        let new = |n| Some((n, true));
        let old = |n| Some((n, false));
        assert_eq!(numbers, [new(0), new(1), old(0), new(2), new(3), old(1), old(3), new(4), None, old(4)]);
        assert_eq!(known.plain().len(), 40);
        let mut many = Known::new(1000);
        (0..1000).for_each(|n| assert_eq!(many.number(f64::from(n)), new(n as u32)));
        (0..1000).for_each(|n| assert_eq!(many.number(f64::from(n)), old(n as u32)));
        assert_eq!(many.number(1000.0), None);
    }

    #[test]
    fn a_page_ends_where_it_is_full() {
        let mut all = Numbers::default();
        all.push(0, LONG_PAGE - 3);
        all.push(1, 7);
        let rows: Vec<usize> = all.pages(LONG_PAGE).iter().map(|p| p.1).collect();
        assert_eq!(rows, [LONG_PAGE, 4]);
        // Of each page the numbers take as many bits as they need there.
        let mut all = Numbers::default();
        all.push(0, SHORT_PAGE);
        all.rise(0, SHORT_PAGE + 5);
        let widths: Vec<u8> = all.pages(SHORT_PAGE).iter().map(|p| p.0[0]).collect();
        assert_eq!(widths, [0, 15, 15]);
    }
}
