//! The façade: an experiment and a ground make a record; studies and their claims; replay.

pub mod experiment;
pub mod import;
pub mod machine;
pub mod replay;
pub mod run;
pub mod script;
pub mod study;

pub use experiment::Experiment;
pub use penstock_check as check;
