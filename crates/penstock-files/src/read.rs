//! Reading: regular files of bounded size, and only below the folders that were allowed.

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

/// Most bytes of an experiment, a script, a text that one of them names.
pub const TEXT: u64 = 64 << 20;

/// Most bytes of a capture, a series, an output.
pub const LARGE: u64 = 1 << 30;

/// Reads a file that somebody named on the command line: a regular one, or a descriptor of this process (`/dev/stdin`, `/dev/fd/63` of a
/// shell's `<(…)`), at most `limit` bytes.
///
/// # Errors
/// A sentence why not, without the file's name.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    read_io(path, limit).map_err(|e| sentence(&e))
}

/// The same with the system's own error where there is one.
///
/// # Errors
/// Why not; what is not a regular file, or too large, is [`io::ErrorKind::InvalidInput`].
pub fn read_io(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let text = path.to_string_lossy();
    let own = ["/dev/fd/", "/proc/self/fd/"].iter().any(|f| text.starts_with(f)) || text == "/dev/stdin";
    // Neither the opening nor the reading of what is not a file waits.
    let flags = if own { 0 } else { nix::libc::O_NONBLOCK };
    contents(OpenOptions::new().read(true).custom_flags(flags).open(path)?, limit, own)
}

/// Reads standard input, at most `limit` bytes.
///
/// # Errors
/// Why not.
pub fn read_stdin(limit: u64) -> io::Result<Vec<u8>> {
    bounded(io::stdin().lock(), limit)
}

/// The folders that the words of a file may lead into.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Each as it was said, and where it leads.
    folders: Vec<(PathBuf, PathBuf)>,
}

impl Roots {
    /// No folder yet: nothing may be read.
    pub fn new() -> Roots {
        Roots::default()
    }

    /// The folder that a file lies in.
    ///
    /// # Errors
    /// A sentence why it is none.
    pub fn beside(file: &Path) -> Result<Roots, String> {
        let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Roots::new().allow(folder)
    }

    /// One more.
    ///
    /// # Errors
    /// A sentence why it is none.
    pub fn allow(mut self, folder: &Path) -> Result<Roots, String> {
        let said = |e: String| format!("{}: {e}", folder.display());
        let real = fs::canonicalize(folder).map_err(|e| said(sentence(&e)))?;
        if !real.is_dir() {
            return Err(said("it is not a folder".to_owned()));
        }
        self.folders.push((folder.to_owned(), real));
        Ok(self)
    }

    /// Reads a regular file of at most `limit` bytes that lies below one of the folders, wherever symbolic links lead.
    ///
    /// # Errors
    /// A sentence why not, without the file's name and without a word of what is in it.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, String> {
        // A path whose own words lead outside is not even looked at: not whether there is such a file either.
        let plain = plain(path).map_err(|e| sentence(&e))?;
        if !self.folders.iter().any(|(said, real)| {
            plain.starts_with(real) || self::plain(said).is_ok_and(|said| plain.starts_with(said))
        }) {
            return Err(self.outside());
        }
        let real = fs::canonicalize(path).map_err(|e| sentence(&e))?;
        let root = self.folders.iter().find(|(_, root)| real.starts_with(root));
        let Some((_, root)) = root else { return Err(self.outside()) };
        beneath(root, &real).and_then(|file| contents(file, limit, false)).map_err(|e| sentence(&e))
    }

    fn outside(&self) -> String {
        let folders: Vec<String> = self.folders.iter().map(|(said, _)| said.display().to_string()).collect();
        let list = folders.join(" and ");
        format!("it lies outside {list}: --allow-path DIR allows another folder")
    }
}

/// The absolute path with its `.` and `..` taken as they stand, without looking at the disk.
fn plain(path: &Path) -> io::Result<PathBuf> {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Ok(plain)
}

/// Opens a path without symbolic links below a folder; whoever changes one of its parts into a link in the meantime is refused.
fn beneath(root: &Path, real: &Path) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let below = real.strip_prefix(root).map_err(io::Error::other)?;
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let folder = File::open(root)?;
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
    match openat2(&folder, below, OpenHow::new().flags(flags).resolve(resolve)) {
        Ok(file) => Ok(file.into()),
        // Kernels before 5.6, and filters of containers that do not know the call.
        Err(nix::errno::Errno::ENOSYS | nix::errno::Errno::EPERM) => {
            OpenOptions::new().read(true).custom_flags(flags.bits()).open(real)
        }
        Err(e) => Err(e.into()),
    }
}

/// What is in an open file. `own`: a descriptor that was handed to us, which may be a pipe or a terminal.
fn contents(file: File, limit: u64, own: bool) -> io::Result<Vec<u8>> {
    let found = file.metadata()?;
    let kind = found.file_type();
    let is = match () {
        () if kind.is_file() => {
            return if found.len() > limit { Err(larger(limit)) } else { bounded(file, limit) };
        }
        () if kind.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        () if own => return bounded(file, limit),
        () if kind.is_fifo() => "a pipe",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "something else",
    };
    Err(invalid(format!("it is {is}, not a regular file")))
}

fn bounded(from: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(larger(limit)) } else { Ok(bytes) }
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn larger(limit: u64) -> io::Error {
    invalid(match limit {
        0..0x10_0000 => format!("it is larger than {limit} bytes"),
        _ => format!("it is larger than {} MiB", limit >> 20),
    })
}

fn sentence(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::WouldBlock => "it gives nothing without waiting".to_owned(),
        _ if e.raw_os_error() == Some(nix::libc::ENXIO) => "it is a socket, not a regular file".to_owned(),
        _ => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("penstock-read-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("in/sub")).unwrap();
        fs::create_dir_all(path.join("out")).unwrap();
        fs::write(path.join("in/a"), "a").unwrap();
        fs::write(path.join("in/sub/b"), "b").unwrap();
        fs::write(path.join("out/c"), "c").unwrap();
        path
    }

    #[test]
    fn words_lead_nowhere_outside() {
        let place = place("outside");
        let roots = Roots::beside(&place.join("in/x.toml")).unwrap();
        let read = |path: &str| roots.read(&place.join("in").join(path), TEXT);
        assert_eq!((read("a").unwrap(), read("sub/../sub/b").unwrap()), (b"a".to_vec(), b"b".to_vec()));
        symlink("sub/b", place.join("in/good")).unwrap();
        symlink("../out/c", place.join("in/bad")).unwrap();
        symlink("../out", place.join("in/way")).unwrap();
        symlink(place.join("in/a"), place.join("out/back")).unwrap();
        assert_eq!(read("good").unwrap(), b"b");
        let absolute = place.join("out/c");
        for path in
            ["../out/c", "bad", "way/c", "../out/nothing", "/etc/hostname", absolute.to_str().unwrap()]
        {
            let said = read(path).unwrap_err();
            assert!(said.starts_with("it lies outside ") && said.contains("--allow-path"), "{path}: {said}");
        }
        // A link outside may lead back, but the word may not name it.
        assert!(read("../out/back").is_err());
        assert_eq!(read("nothing").unwrap_err(), "there is no such file");
        let wider = roots.clone().allow(&place.join("out")).unwrap();
        assert_eq!(wider.read(&absolute, TEXT).unwrap(), b"c");
        assert_eq!(wider.read(&place.join("in/bad"), TEXT).unwrap(), b"c");
        assert!(
            Roots::new().allow(&place.join("in/a")).is_err() && Roots::new().read(&absolute, TEXT).is_err()
        );
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn only_regular_files_of_bounded_size() {
        let place = place("regular");
        let roots = Roots::beside(&place.join("in/x.toml")).unwrap();
        let fifo = place.join("in/fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place.join("in/socket")).unwrap();
        symlink("/dev/zero", place.join("in/zero")).unwrap();
        for (path, said) in [
            ("in/fifo", "it is a pipe, not a regular file"),
            ("in/socket", "it is a socket, not a regular file"),
            ("in/sub", "it is a folder"),
        ] {
            assert_eq!(roots.read(&place.join(path), TEXT).unwrap_err(), said);
            assert_eq!(read(&place.join(path), TEXT).unwrap_err(), said);
        }
        assert_eq!(read(&place.join("in/zero"), TEXT).unwrap_err(), "it is a device, not a regular file");
        assert!(roots.read(&place.join("in/zero"), TEXT).unwrap_err().starts_with("it lies outside"));
        let huge = File::create(place.join("in/huge")).unwrap();
        huge.set_len(TEXT + 1).unwrap();
        assert_eq!(read(&place.join("in/huge"), TEXT).unwrap_err(), "it is larger than 64 MiB");
        assert_eq!(read(&place.join("in/a"), 1).unwrap(), b"a");
        assert_eq!(read(&place.join("in/a"), 0).unwrap_err(), "it is larger than 0 bytes");
        // A file of /proc has no length and may have any.
        assert!(read(Path::new("/proc/self/status"), 10).unwrap_err().starts_with("it is larger"));
        fs::remove_dir_all(place).unwrap();
    }
}
