//! Runs an experiment on a ground and makes its record.

pub mod beside;
pub mod experiment;
pub mod many;
pub mod run;
pub mod sweep;
#[cfg(not(target_family = "wasm"))]
pub mod tune;

pub use experiment::Experiment;
