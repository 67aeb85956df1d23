//! The rows of a series' Parquet file, column by column: a file of a thousand flows is read several times faster than row by row.

use super::{Series, SeriesError};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::file::reader::{FileReader, SerializedFileReader};

/// Rows that are read of each column at a time.
const BATCH: usize = 1 << 14;

/// A column of names or of numbers, and the part of it that was read.
struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

impl<T: DataType> Column<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Column<T> {
        Column { reader, values: Vec::new() }
    }
    /// Reads the next part; how many rows it has.
    fn next(&mut self) -> Result<usize, SeriesError> {
        self.values.clear();
        // Of columns that may be null, as other writers make them.
        let mut levels = Vec::new();
        let (rows, values, _) = self.reader.read_records(BATCH, Some(&mut levels), None, &mut self.values)?;
        if rows != values {
            return Err(SeriesError("a value is null".to_owned()));
        }
        Ok(rows)
    }
}

fn names(column: ColumnReader) -> Result<Column<ByteArrayType>, SeriesError> {
    match column {
        ColumnReader::ByteArrayColumnReader(reader) => Ok(Column::new(reader)),
        _ => Err(SeriesError("a column of names has another type".to_owned())),
    }
}
fn numbers(column: ColumnReader) -> Result<Column<DoubleType>, SeriesError> {
    match column {
        ColumnReader::DoubleColumnReader(reader) => Ok(Column::new(reader)),
        _ => Err(SeriesError("a column of numbers has another type".to_owned())),
    }
}

/// Reads `rows` rows at most into a series.
pub(super) fn read(
    reader: &SerializedFileReader<bytes::Bytes>,
    rows: i64,
    series: &mut Series,
) -> Result<(), SeriesError> {
    let mut seen = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let column = |n| group.get_column_reader(n);
        let (mut times, mut values) = (numbers(column(0)?)?, numbers(column(4)?)?);
        let mut of = [names(column(1)?)?, names(column(2)?)?, names(column(3)?)?];
        // The curve of the row before, and its names.
        let mut last: Option<([ByteArray; 3], usize)> = None;
        loop {
            let n = times.next()?;
            let mut same = values.next()? == n;
            for names in &mut of {
                same &= names.next()? == n;
            }
            if !same {
                return Err(SeriesError("its columns are not equally long".to_owned()));
            }
            if n == 0 {
                break;
            }
            seen += n as i64;
            if seen > rows {
                return Err(SeriesError("it has more rows than it says".to_owned()));
            }
            for i in 0..n {
                let row = [&of[0].values[i], &of[1].values[i], &of[2].values[i]];
                let curve = match &last {
                    Some((names, curve)) if row.iter().zip(names).all(|(a, b)| a.data() == b.data()) => {
                        *curve
                    }
                    _ => {
                        let [host, object, metric] = row.map(ByteArray::as_utf8);
                        let curve = series.curve(host?, object?, metric?);
                        last = Some((row.map(Clone::clone), curve));
                        curve
                    }
                };
                series.push(curve, times.values[i], values.values[i]);
            }
        }
    }
    Ok(())
}
