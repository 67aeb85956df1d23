//! The tests of TCP in one program: each file is a module here, and is run alone by its name (`cargo test -p penstock-tcp NAME::`).

mod basics;
mod linux;
mod ns2;
mod pair;
mod recovery;
mod reliable;
mod scenarios;
mod sequences;
mod shapes;
mod shared;
