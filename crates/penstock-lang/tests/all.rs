//! The tests of the command language in one program: each file is a module here, and is run alone by its name (`cargo test -p penstock-lang NAME::`).

mod any_words;
mod commands;
mod requests;
mod shows;
mod virtual_lab;
mod wire;
