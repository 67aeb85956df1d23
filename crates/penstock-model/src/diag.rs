//! What is wrong, where, and how to fix it.

use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Legal, but a likely mistake.
    Warning,
    /// Refused.
    Error,
}

/// One finding about a text that somebody wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// File or script name; empty where the text came from no file.
    pub file: String,
    /// Line, from 1; 0 where there is none.
    pub line: u32,
    /// Column in characters, from 1; 0 where there is none.
    pub column: u32,
    /// Length of the marked text in characters.
    pub len: u32,
    /// First line: word for word as the tool or the kernel says it, where one of them does.
    pub message: String,
    /// What to write instead; may be empty.
    pub help: String,
    /// The line of text itself; may be empty.
    pub source: String,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            file: String::new(),
            line: 0,
            column: 0,
            len: 0,
            message: message.into(),
            help: String::new(),
            source: String::new(),
        }
    }
    /// The same with advice.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = help.into();
        self
    }
    /// The same at a place: line and column from 1, `len` characters.
    pub fn at(mut self, file: &str, line: u32, column: u32, len: u32) -> Diagnostic {
        (self.file, self.line, self.column, self.len) = (file.to_owned(), line, column, len);
        self
    }
    /// The same with the line of text it speaks of.
    pub fn source(mut self, source: &str) -> Diagnostic {
        self.source = source.to_owned();
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
        }
        if self.line > 0 {
            write!(f, "{}:", self.line)?;
            if self.column > 0 {
                write!(f, "{}:", self.column)?;
            }
        }
        if !self.file.is_empty() || self.line > 0 {
            f.write_str(" ")?;
        }
        f.write_str(&self.message)?;
        if !self.source.is_empty() {
            write!(f, "\n  {}", self.source)?;
            if self.column > 0 {
                let pad = self.column as usize - 1;
                write!(f, "\n  {:pad$}{}", "", "^".repeat(self.len.max(1) as usize))?;
            }
            if !self.help.is_empty() {
                // Beside the mark, or below a line without one.
                write!(f, "{}{}", if self.column > 0 { " " } else { "\n  " }, self.help)?;
            }
        } else if !self.help.is_empty() {
            write!(f, "\n  {}", self.help)?;
        }
        Ok(())
    }
}

/// The kernel's refusal of a request: an errno and, since 4.16, a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelError {
    /// Positive errno, e.g. 17 (EEXIST).
    pub errno: i32,
    /// The extack sentence without tc's `Error: ` and full stop; empty where the kernel gives none.
    pub extack: String,
}

impl KernelError {
    /// Operation not permitted: an action that filters hold.
    pub const EPERM: i32 = 1;
    /// No such file or directory: nothing there to change or delete.
    pub const ENOENT: i32 = 2;
    /// Argument list too long.
    pub const E2BIG: i32 = 7;
    /// No such process (used for chains and classes).
    pub const ESRCH: i32 = 3;
    /// Resource temporarily unavailable: an index that is just being made.
    pub const EAGAIN: i32 = 11;
    /// Cannot allocate memory.
    pub const ENOMEM: i32 = 12;
    /// Device or resource busy.
    pub const EBUSY: i32 = 16;
    /// File exists.
    pub const EEXIST: i32 = 17;
    /// No such device.
    pub const ENODEV: i32 = 19;
    /// Bad file descriptor.
    pub const EBADF: i32 = 9;
    /// Permission denied.
    pub const EACCES: i32 = 13;
    /// Invalid argument.
    pub const EINVAL: i32 = 22;
    /// Message too long: a dump that cannot go on.
    pub const EMSGSIZE: i32 = 90;
    /// Bad message.
    pub const EBADMSG: i32 = 74;
    /// No space left on device: no free handle.
    pub const ENOSPC: i32 = 28;
    /// Numerical result out of range.
    pub const ERANGE: i32 = 34;
    /// Function not implemented.
    pub const ENOSYS: i32 = 38;
    /// Too many levels of symbolic links: a loop of filters.
    pub const ELOOP: i32 = 40;
    /// Protocol not supported.
    pub const EPROTONOSUPPORT: i32 = 93;
    /// Operation not supported.
    pub const EOPNOTSUPP: i32 = 95;

    /// A refusal with a sentence.
    pub fn new(errno: i32, extack: impl Into<String>) -> KernelError {
        KernelError { errno, extack: extack.into() }
    }
    /// A bare errno.
    pub fn errno(errno: i32) -> KernelError {
        KernelError { errno, extack: String::new() }
    }
    /// glibc's `strerror` of the errno.
    pub fn strerror(&self) -> &'static str {
        match self.errno {
            1 => "Operation not permitted",
            2 => "No such file or directory",
            3 => "No such process",
            5 => "Input/output error",
            6 => "No such device or address",
            7 => "Argument list too long",
            9 => "Bad file descriptor",
            11 => "Resource temporarily unavailable",
            12 => "Cannot allocate memory",
            13 => "Permission denied",
            16 => "Device or resource busy",
            17 => "File exists",
            19 => "No such device",
            22 => "Invalid argument",
            28 => "No space left on device",
            33 => "Numerical argument out of domain",
            34 => "Numerical result out of range",
            38 => "Function not implemented",
            40 => "Too many levels of symbolic links",
            49 => "Protocol driver not attached",
            75 => "Value too large for defined data type",
            90 => "Message too long",
            93 => "Protocol not supported",
            95 => "Operation not supported",
            97 => "Address family not supported by protocol",
            98 => "Address already in use",
            99 => "Cannot assign requested address",
            100 => "Network is down",
            101 => "Network is unreachable",
            105 => "No buffer space available",
            110 => "Connection timed out",
            111 => "Connection refused",
            113 => "No route to host",
            _ => "Unknown error",
        }
    }
}

impl fmt::Display for KernelError {
    /// As libnetlink prints it: `Error: Sentence.` or `RTNETLINK answers: File exists`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.extack.is_empty() {
            write!(f, "RTNETLINK answers: {}", self.strerror())
        } else {
            write!(f, "Error: {}{}", self.extack, if self.extack.ends_with('.') { "" } else { "." })
        }
    }
}

impl std::error::Error for KernelError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_read_as_tc_prints_them() {
        assert_eq!(KernelError::errno(KernelError::EEXIST).to_string(), "RTNETLINK answers: File exists");
        let e = KernelError::new(KernelError::ENOENT, "Specified qdisc kind is unknown");
        assert_eq!(e.to_string(), "Error: Specified qdisc kind is unknown.");
    }

    #[test]
    fn a_diagnostic_points_at_the_word() {
        let d = Diagnostic::error("tbf: the \"burst\" parameter is mandatory.")
            .at("x.sh", 3, 5, 3)
            .source("    tbf rate 1mbit")
            .help("add e.g. burst 5kb");
        let want = "x.sh:3:5: tbf: the \"burst\" parameter is mandatory.\n      tbf rate 1mbit\n      ^^^ add e.g. burst 5kb";
        assert_eq!(d.to_string(), want);
    }
}
