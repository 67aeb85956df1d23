//! Where there is no computer with files (WebAssembly): nothing is read and nothing is written. Who runs there brings texts along.

use std::io;
use std::path::Path;

/// Most bytes of an experiment, a script, a text that one of them names.
pub const TEXT: u64 = 64 << 20;

/// Most bytes of a capture, a series, an output.
pub const LARGE: u64 = 1 << 30;

/// Reads nothing.
///
/// # Errors
/// Always: a sentence that there are no files.
pub fn read(_: &Path, _: u64) -> Result<Vec<u8>, String> {
    Err("there are no files here".to_owned())
}

/// Reads nothing.
///
/// # Errors
/// Always.
pub fn read_io(_: &Path, _: u64) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Reads nothing.
///
/// # Errors
/// Always.
pub fn read_stdin(_: u64) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A folder that cannot be made.
#[derive(Debug)]
pub struct Scratch(());

impl Scratch {
    /// Makes none.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: &Path) -> io::Result<Scratch> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Nowhere.
    pub fn path(&self) -> &Path {
        Path::new("")
    }
}

/// No folder.
#[derive(Clone, Debug, Default)]
pub struct Roots(());

impl Roots {
    /// No folder yet.
    pub fn new() -> Roots {
        Roots(())
    }

    /// The folder that a file lies in.
    ///
    /// # Errors
    /// None.
    pub fn beside(_: &Path) -> Result<Roots, String> {
        Ok(Roots(()))
    }

    /// One more.
    ///
    /// # Errors
    /// None.
    pub fn allow(self, _: &Path) -> Result<Roots, String> {
        Ok(self)
    }

    /// Reads nothing.
    ///
    /// # Errors
    /// Always: a sentence that there are no files.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, String> {
        read(path, limit)
    }
}

/// Writes nothing.
///
/// # Errors
/// Always: there is no disk.
pub fn replace(_: &Path, _: impl AsRef<[u8]>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Writes nothing.
///
/// # Errors
/// Always: there is no disk.
pub fn replace_folder(
    _: &Path,
    _: &dyn Fn(&Path) -> Result<(), String>,
    _: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Finds nothing that a killed writer left.
pub fn sweep(_: &Path) {}
