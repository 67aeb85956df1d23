//! Files and folders of the real computer: replaced whole or not at all, and read only where that is allowed.
//!
//! [`replace`] and [`replace_folder`] write beside the target and then rename: whoever is killed, or finds the disk full, leaves the old
//! or the new. What they write in until then is a [`Scratch`], a folder that proves by its contents and a lock whose it is; what a killed
//! writer left, the next one that writes there takes away. [`read`] takes regular files of bounded size, and [`Roots`] keeps what a
//! file's own words name below the folders that were allowed.

mod confine;
mod read;
mod replace;
mod scratch;

pub use confine::confine;
pub use read::{LARGE, Roots, TEXT, read, read_io, read_stdin};
pub use replace::{Replacement, replace, replace_folder};
pub use scratch::{Scratch, sweep, sweep_with};
