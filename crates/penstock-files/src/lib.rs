//! Files and folders of the real computer: replaced whole or not at all, and read only where that is allowed.
//!
//! [`replace`] and [`replace_folder`] write next to the target and then rename. After a kill or with a full disk either the old or the new
//! version is there. Until then they write to a [`Scratch`] folder, which can be recognised as ours by its contents and a lock. The next
//! writer removes what a killed one left. [`read`] reads regular files of limited size. [`Roots`] keeps the paths in a file below the
//! allowed folders.

mod confine;
mod read;
mod replace;
mod scratch;

pub use confine::confine;
pub use read::{LARGE, Roots, TEXT, read, read_io, read_stdin};
pub use replace::{Replacement, replace, replace_folder};
pub use scratch::{Scratch, sweep, sweep_with};
