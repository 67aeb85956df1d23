//! Files and folders of the real computer: replaced whole or not at all, and read only where that is allowed.
//!
//! [`replace`] and [`replace_folder`] write next to the target and then rename. After a kill or with a full disk either the old or the new
//! version is there. Until then they write to a [`Scratch`] folder, which can be recognised as ours by its contents and a lock. The next
//! writer removes what a killed one left. [`read`] reads regular files of limited size. [`Roots`] keeps the paths in a file below the
//! allowed folders.
//!
//! Where there is no computer with files (WebAssembly), nothing is read and nothing is written.

#[cfg(not(target_family = "wasm"))]
mod confine;
#[cfg(target_family = "wasm")]
mod memory;
#[cfg(not(target_family = "wasm"))]
mod read;
#[cfg(not(target_family = "wasm"))]
mod replace;
#[cfg(not(target_family = "wasm"))]
mod scratch;

#[cfg(not(target_family = "wasm"))]
pub use confine::confine;
#[cfg(target_family = "wasm")]
pub use memory::{LARGE, Roots, Scratch, TEXT, read, read_io, read_stdin, replace, replace_folder, sweep};
#[cfg(not(target_family = "wasm"))]
pub use read::{LARGE, Roots, TEXT, read, read_io, read_stdin};
#[cfg(not(target_family = "wasm"))]
pub use replace::{Replacement, replace, replace_folder};
#[cfg(not(target_family = "wasm"))]
pub use scratch::{Scratch, sweep, sweep_with};
