//! What a command reads besides its words: standard input and the files it names.

use std::fmt;

/// Where a command's files come from. The machine itself has none; whoever runs the command lends them.
pub trait Files {
    /// The whole text of a file; `-` is standard input.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn read(&mut self, path: &str) -> Result<String, FileError>;
}

/// Why a file cannot be read, in the words of `strerror`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileError {
    /// ENOENT.
    NotFound,
    /// EACCES.
    Denied,
    /// EISDIR.
    IsFolder,
    /// EIO, for all else.
    Other,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileError::NotFound => "No such file or directory",
            FileError::Denied => "Permission denied",
            FileError::IsFolder => "Is a directory",
            FileError::Other => "Input/output error",
        })
    }
}

/// No files, and nothing on standard input.
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        match path {
            "-" => Ok(String::new()),
            _ => Err(FileError::NotFound),
        }
    }
}
