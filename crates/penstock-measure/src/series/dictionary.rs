//! Columns of `series.parquet` that are written as a dictionary and numbers into it, by whoever knows the numbers already.
//!
//! The Parquet writer finds the number of each value by hashing the value. Of a name the same value stands in every row of a curve: here it is
//! a run, which is written by its length. Times mostly follow each other as in the curve before: their numbers do too.
//!
//! Follows: the Parquet format, `Encodings.md`: PLAIN for dictionaries, RLE / bit-packing hybrid for the numbers.

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
/// Most rows of a page.
const PAGE_ROWS: usize = 1 << 20;

/// Numbers into a dictionary, as runs of equal ones.
#[derive(Default)]
pub(super) struct Numbers {
    /// Number and how many of it follow each other.
    runs: Vec<(u32, usize)>,
    rows: usize,
}

impl Numbers {
    /// Adds a number so many times.
    pub(super) fn push(&mut self, number: u32, times: usize) {
        self.rows += times;
        match self.runs.last_mut() {
            _ if times == 0 => {}
            Some(run) if run.0 == number => run.1 += times,
            _ => self.runs.push((number, times)),
        }
    }
    /// The pages' contents, each with its rows; numbers take `width` bits.
    fn pages(&self, width: u32) -> Vec<(Vec<u8>, usize)> {
        let mut pages = Vec::new();
        let mut page = Hybrid::new(width);
        for &(number, mut times) in &self.runs {
            while times > 0 {
                let fits = times.min(PAGE_ROWS - page.rows);
                page.add(number, fits);
                times -= fits;
                if page.rows == PAGE_ROWS {
                    pages.push(std::mem::replace(&mut page, Hybrid::new(width)).finish());
                }
            }
        }
        if page.rows > 0 {
            pages.push(page.finish());
        }
        pages
    }
}

/// One page of numbers: runs by their length, others in groups of eight by their bits.
struct Hybrid {
    bytes: Vec<u8>,
    width: u32,
    rows: usize,
    /// Not written yet: numbers that stand in no run.
    single: Vec<u32>,
}

impl Hybrid {
    fn new(width: u32) -> Hybrid {
        Hybrid { bytes: vec![width as u8], width, rows: 0, single: Vec::new() }
    }
    fn add(&mut self, number: u32, mut times: usize) {
        self.rows += times;
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
            while held >= 8 {
                self.bytes.push(bits as u8);
                bits >>= 8;
                held -= 8;
            }
        }
    }
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }
    fn finish(mut self) -> (Vec<u8>, usize) {
        self.write_single();
        (self.bytes, self.rows)
    }
}

/// A column that is ready to be put into a row group.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// Makes a column of a dictionary (`plain`: its `count` values) and the numbers of its rows.
pub(super) fn column(
    descr: ColumnDescPtr,
    plain: &[u8],
    count: usize,
    numbers: &Numbers,
    statistics: Option<Statistics>,
) -> Result<Chunk, SeriesError> {
    let mut sum = Sum::default();
    let mut sink = TrackedWrite::new(Vec::new());
    let mut writer = SerializedPageWriter::new(&mut sink);
    let encoding = Encoding::PLAIN;
    let buf = compress(plain)?;
    let page = Page::DictionaryPage { buf, num_values: count as u32, encoding, is_sorted: false };
    let spec = writer.write_page(CompressedPage::new(page, plain.len()))?;
    sum.add(&spec);
    let (dictionary, mut first, mut pages) = (spec.offset, None, 0);
    let width = u32::BITS - (count.max(1) as u32 - 1).leading_zeros();
    for (bytes, rows) in numbers.pages(width) {
        let page = Page::DataPage {
            buf: compress(&bytes)?,
            num_values: rows as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let spec = writer.write_page(CompressedPage::new(page, bytes.len()))?;
        sum.add(&spec);
        first = first.or(Some(spec.offset));
        pages += 1;
    }
    writer.close()?;
    let stats = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
    let mut metadata = ColumnChunkMetaData::builder(descr)
        .set_compression_codec(Compression::SNAPPY.into())
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_page_encoding_stats(vec![
            stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
            stats(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, pages),
        ])
        .set_total_compressed_size(sum.compressed as i64)
        .set_total_uncompressed_size(sum.uncompressed as i64)
        .set_num_values(numbers.rows as i64)
        .set_dictionary_page_offset(Some(dictionary as i64))
        .set_data_page_offset(first.unwrap_or(dictionary) as i64);
    if let Some(statistics) = statistics {
        metadata = metadata.set_statistics(statistics);
    }
    let close = ColumnCloseResult {
        bytes_written: sum.compressed as u64,
        rows_written: numbers.rows as u64,
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

    fn page(width: u32, numbers: &[(u32, usize)]) -> Vec<u8> {
        let mut all = Numbers::default();
        numbers.iter().for_each(|&(number, times)| all.push(number, times));
        let pages = all.pages(width);
        assert_eq!(pages.len(), 1);
        pages[0].0.clone()
    }

    #[test]
    fn the_format_s_own_example_is_packed_so() {
        // Encodings.md: 0 to 7 of three bits are 10001000 11000110 11111010.
        let each: Vec<(u32, usize)> = (0..8).map(|n| (n, 1)).collect();
        assert_eq!(page(3, &each), [3, 0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn runs_are_written_by_their_length() {
        assert_eq!(page(9, &[(300, 100)]), [9, 0xc8, 0x01, 0x2c, 0x01]);
        // What is equal in curves that follow each other is one run.
        assert_eq!(page(1, &[(1, 5), (1, 5)]), [1, 20, 1]);
        // The group before a run is filled from it.
        assert_eq!(page(2, &[(1, 1), (2, 20)]), [2, 0b11, 0b1010_1001, 0b1010_1010, 26, 2]);
        // Of one value no bits are written.
        assert_eq!(page(0, &[(0, 70)]), [0, 0x8c, 0x01]);
    }

    #[test]
    fn a_page_ends_where_it_is_full() {
        let mut all = Numbers::default();
        all.push(0, PAGE_ROWS - 3);
        all.push(1, 7);
        let rows: Vec<usize> = all.pages(1).iter().map(|p| p.1).collect();
        assert_eq!(rows, [PAGE_ROWS, 4]);
    }
}
