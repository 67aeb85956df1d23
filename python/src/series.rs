//! Series as an Arrow table, for whoever takes Arrow's C stream (the PyCapsule interface).

use crate::PenstockError;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use penstock_measure::series;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// The columns, in their order: seconds from the start of the run, machine, what on it, which quantity with its unit, value.
const NAMES: [&str; 5] = ["time_s", "host", "object", "metric", "value"];

/// What changed over time, in long form, a row a sample: time_s, host, object, metric, value.
///
/// It is an Arrow table for whatever takes one without a copy: pyarrow.table(series), polars.DataFrame(series), duckdb.sql("from series").
#[pyclass(frozen, module = "penstock")]
pub(crate) struct Series {
    schema: SchemaRef,
    batch: RecordBatch,
}

impl Series {
    pub(crate) fn new(series: &series::Series) -> PyResult<Series> {
        let curves = series.curves();
        let number = |of: fn(&(f64, f64)) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(curves.iter().flat_map(move |c| c.points.iter().map(of))))
        };
        let word = |of: fn(&series::Curve) -> &str| -> ArrayRef {
            let all = curves.iter().flat_map(move |c| std::iter::repeat_n(of(c), c.points.len()));
            Arc::new(StringArray::from_iter_values(all))
        };
        let columns = vec![
            number(|p| p.0),
            word(|c| &c.host),
            word(|c| &c.object),
            word(|c| &c.metric),
            number(|p| p.1),
        ];
        let kinds = columns.iter().map(|c| c.data_type().clone());
        let field = |(name, kind): (&str, DataType)| Field::new(name, kind, false);
        let schema = Arc::new(Schema::new(NAMES.into_iter().zip(kinds).map(field).collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema.clone(), columns);
        let batch = batch.map_err(|e| PenstockError::new_err(format!("series: {e}")))?;
        Ok(Series { schema, batch })
    }
}

/// A module that is not always there.
fn library<'py>(py: Python<'py>, name: &str, extra: &str) -> PyResult<Bound<'py, PyModule>> {
    let why = |_| PyImportError::new_err(format!("this needs {name}: pip install 'penstock[{extra}]'"));
    py.import(name).map_err(why)
}

#[pymethods]
impl Series {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&'static str> {
        NAMES.to_vec()
    }

    /// How many samples there are.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Arrow's C stream. The arrays are shared, not copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer's wish, which the producer need not follow.
        drop(requested_schema);
        let batches = [Ok::<_, ArrowError>(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// A pyarrow.Table on the same memory. Needs pyarrow >= 14.
    fn arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pyarrow", "tables")?.call_method1("table", (slf,))
    }

    /// A pandas.DataFrame. Needs pandas and pyarrow.
    fn pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pandas", "pandas")?;
        Series::arrow(slf)?.call_method0("to_pandas")
    }

    /// A polars.DataFrame. Needs polars >= 1.
    fn polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "polars", "polars")?.call_method1("DataFrame", (slf,))
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<penstock.Series {} rows: {}>", self.batch.num_rows(), NAMES.join(", "))
    }
}
