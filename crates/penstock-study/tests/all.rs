//! The tests of the studies in one program: each file is a module here, and is run alone by its name (`cargo test -p penstock-study NAME::`).

mod aqm_domains;
mod determinism;
mod systems;
mod threads;
