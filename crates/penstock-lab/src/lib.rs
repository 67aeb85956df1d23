//! The façade: an experiment and a ground make a record.

pub mod beside;
pub mod experiment;
pub mod run;

pub use experiment::Experiment;
