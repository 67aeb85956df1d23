//! A sweep as a Parquet file: a row for each run, a column for each parameter and each figure.

use super::Sweep;
use crate::series::SeriesError;
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One column.
enum Column {
    Whole(Vec<i64>),
    Text(Vec<String>),
    Number(Vec<Option<f64>>),
}

impl Sweep {
    /// The bytes of `results.parquet`. Columns: `point` (from 1), `seed`, each parameter by its path as text and, where it is a quantity, as a number with the
    /// unit behind the name (`link.uplink.rate_bit_s`); `expects_met`, `expects_unmet`, `refused` (the reason, else empty); each figure with its unit
    /// behind it in brackets (`call owd p99 [ms]`), null where a run has none.
    ///
    /// # Errors
    /// When the writer refuses.
    pub fn to_parquet(&self) -> Result<Vec<u8>, SeriesError> {
        let columns = self.columns();
        let fields = columns.iter().map(|(name, column)| {
            let (physical, converted, repetition) = match column {
                Column::Whole(_) => (Physical::INT64, ConvertedType::NONE, Repetition::REQUIRED),
                Column::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8, Repetition::REQUIRED),
                Column::Number(_) => (Physical::DOUBLE, ConvertedType::NONE, Repetition::OPTIONAL),
            };
            let field = Type::primitive_type_builder(name, physical);
            field.with_repetition(repetition).with_converted_type(converted).build().map(Arc::new)
        });
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?);
        let properties = WriterProperties::builder()
            .set_created_by("penstock".to_owned())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
        let mut from = 0;
        while from < self.runs.len().max(1) {
            let to = (from + GROUP_ROWS).min(self.runs.len());
            let mut group = file.next_row_group()?;
            columns.iter().try_for_each(|(_, column)| write(&mut group, column, from, to))?;
            group.close()?;
            from += GROUP_ROWS;
        }
        Ok(file.into_inner()?)
    }

    /// The columns with their names, each name once.
    fn columns(&self) -> Vec<(String, Column)> {
        let mut all = vec![
            ("point".to_owned(), Column::Whole(self.runs.iter().map(|r| r.point as i64 + 1).collect())),
            ("seed".to_owned(), Column::Whole(self.runs.iter().map(|r| r.seed as i64).collect())),
        ];
        for (n, parameter) in self.parameters.iter().enumerate() {
            let point = |r: &super::Run| &self.points[r.point];
            let text = self.runs.iter().map(|r| point(r).values[n].clone());
            all.push((parameter.path.clone(), Column::Text(text.collect())));
            if let Some(unit) = parameter.unit {
                let numbers = self.runs.iter().map(|r| point(r).numbers[n]);
                all.push((format!("{}_{unit}", parameter.path), Column::Number(numbers.collect())));
            }
        }
        all.push(("expects_met".to_owned(), Column::Whole(self.runs.iter().map(|r| r.met as i64).collect())));
        all.push((
            "expects_unmet".to_owned(),
            Column::Whole(self.runs.iter().map(|r| r.unmet as i64).collect()),
        ));
        let refused = self.runs.iter().map(|r| r.refused.clone().unwrap_or_default());
        all.push(("refused".to_owned(), Column::Text(refused.collect())));
        for (n, figure) in self.figures.iter().enumerate() {
            let name = match figure.unit {
                "" => figure.what.clone(),
                unit => format!("{} [{unit}]", figure.what),
            };
            let values = self.runs.iter().map(|r| r.values.get(n).copied().flatten());
            all.push((name, Column::Number(values.collect())));
        }
        let mut taken = BTreeSet::new();
        all.retain(|(name, _)| taken.insert(name.clone()));
        all
    }
}

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

fn write(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    column: &Column,
    from: usize,
    to: usize,
) -> Result<(), SeriesError> {
    let Some(mut writer) = group.next_column()? else { return Ok(()) };
    match column {
        Column::Whole(all) => writer.typed::<Int64Type>().write_batch(&all[from..to], None, None)?,
        Column::Text(all) => {
            let texts: Vec<ByteArray> = all[from..to].iter().map(|t| t.as_str().into()).collect();
            writer.typed::<ByteArrayType>().write_batch(&texts, None, None)?
        }
        Column::Number(all) => {
            let there: Vec<i16> = all[from..to].iter().map(|x| i16::from(x.is_some())).collect();
            let values: Vec<f64> = all[from..to].iter().copied().flatten().collect();
            writer.typed::<DoubleType>().write_batch(&values, Some(&there), None)?
        }
    };
    Ok(writer.close()?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn each_run_is_a_row_that_reads_back() {
        let sweep = sample();
        let bytes = sweep.to_parquet().unwrap();
        assert_eq!(bytes, sweep.to_parquet().unwrap());
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows: Vec<Vec<(String, Field)>> =
            reader.get_row_iter(None).unwrap().map(|r| r.unwrap().into_columns()).collect();
        assert_eq!(rows.len(), 12);
        let value = |row: usize, name: &str| rows[row].iter().find(|c| c.0 == name).unwrap().1.clone();
        assert_eq!(value(7, "point"), Field::Long(4));
        assert_eq!(value(7, "seed"), Field::Long(2));
        assert_eq!(value(7, "link.uplink.rate"), Field::Str("20mbit".into()));
        assert_eq!(value(7, "link.uplink.rate_bit_s"), Field::Double(2e7));
        assert_eq!(value(7, "call owd p99 [ms]"), Field::Double(24.0));
        assert_eq!(value(7, "call lost"), Field::Null);
    }
}
