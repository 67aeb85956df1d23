//! What was measured: series, quantiles, fairness, the run record, and how numbers, tables and pictures of them look.
//!
//! Nothing here knows which ground made the numbers. Floats live here and decide nothing elsewhere.

pub mod compare;
pub mod fairness;
pub mod flent;
pub mod live;
pub mod number;
pub mod passage;
pub mod phb;
pub mod plot;
pub mod quantile;
pub mod record;
pub mod repeat;
pub mod report;
pub mod scores;
pub mod series;
mod sound;
pub mod sweep;
pub mod table;
pub mod text;
pub mod tune;

pub use fairness::jain;
pub use quantile::Distribution;
pub use record::Record;
pub use series::Series;
