//! The tests of the interpreter in one program: each file is a module here, and is run alone by its name (`cargo test -p penstock-shell NAME::`).

mod debian;
mod golden;
mod grounds;
mod language;
mod limits;
mod material;
mod others;
mod same_bytes;
mod scripts;
mod unknown;
