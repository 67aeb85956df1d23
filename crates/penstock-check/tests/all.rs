//! The tests of check in one program: each file is a module here, and is run alone by its name (`cargo test -p penstock-check NAME::`).

mod corpus;
mod coverage;
mod diff;
mod explain;
mod kernel;
mod limits;
mod others;
mod waits;
mod ways;
