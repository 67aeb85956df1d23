//! A folder of ours, made where something is to be written, that proves whose it is.
//!
//! It holds a file `owner` with the folder's device, inode and random name in it, and the writer holds a lock on that file as long as it
//! lives. A folder is taken away by somebody else only if the lock is free and `owner` names exactly this folder: neither a name nor a copy
//! of one is enough. (Process ids and start times are not asked: a process id is given again, and a container sees its own.)

use nix::unistd::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// How the names begin.
const PREFIX: &str = ".penstock-";
/// Digits of the random part of the names.
const DIGITS: usize = 32;
/// The first line of `owner`.
const MAGIC: &str = "a folder of penstock's, taken away by the next run\n";
/// The file that proves it.
const OWNER: &str = "owner";
/// What is being written.
pub(crate) const NEW: &str = "new";
/// What was there before, where two folders cannot be exchanged in one step.
pub(crate) const OLD: &str = "old";
/// The word in `owner` before the name of the folder that `old` came from.
const TARGET: &str = "target ";
/// Longest `owner` that is read, bytes.
const LONGEST: u64 = 1 << 16;

/// A folder of ours. Dropping it takes it away with all that is in it.
pub struct Scratch {
    path: PathBuf,
    token: String,
    folder: File,
    owner: File,
}

impl Scratch {
    /// Makes one in a folder.
    ///
    /// # Errors
    /// It cannot be made or written.
    pub fn new(parent: &Path) -> io::Result<Scratch> {
        loop {
            let token = token()?;
            let path = parent.join(format!("{PREFIX}{token}"));
            DirBuilder::new().mode(0o700).create(&path)?;
            let folder = match open_folder(&path) {
                Ok(folder) => folder,
                // Somebody who tidies up found an empty folder.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => {
                    let _ = fs::remove_dir(&path);
                    return Err(e);
                }
            };
            let found = folder.metadata()?;
            if found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
                return Err(io::Error::other("somebody else has changed what was just made"));
            }
            let owner = inside(&folder, &path).join(OWNER);
            let owner = match OpenOptions::new().create_new(true).append(true).mode(0o600).open(owner) {
                Ok(owner) => owner,
                // The same, a moment later.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => {
                    let _ = fs::remove_dir(&path);
                    return Err(e);
                }
            };
            let mut scratch = Scratch { path, token, folder, owner };
            scratch.owner.lock()?;
            if scratch.owner.metadata()?.nlink() == 0 {
                continue;
            }
            let own = scratch.folder.metadata()?;
            let text = format!("{MAGIC}{} {} {}\n", own.dev(), own.ino(), scratch.token);
            scratch.owner.write_all(text.as_bytes())?;
            scratch.owner.sync_all()?;
            return Ok(scratch);
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder itself, whatever its path leads to by now: who may write to the folder that it lies in can put a link in its place.
    pub(crate) fn inside(&self) -> PathBuf {
        inside(&self.folder, &self.path)
    }

    /// The random part of its name: 32 hexadecimal digits.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Notes the name of the folder beside this one that is being moved here as `old`, and goes back when its writer is killed.
    pub(crate) fn note_target(&mut self, name: &[u8]) -> io::Result<()> {
        let hex: String = name.iter().map(|b| format!("{b:02x}")).collect();
        self.owner.write_all(format!("{TARGET}{hex}\n").as_bytes())?;
        self.owner.sync_all()
    }

    /// The file whose lock says that the writer lives; a process that has a copy of it keeps the folder as well.
    ///
    /// # Errors
    /// The system gives no more descriptors.
    pub fn lock(&self) -> io::Result<File> {
        self.owner.try_clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be taken away now, the next writer takes away.
        let _ = remove(&self.folder, &self.path);
    }
}

/// Opens a folder that is not a link.
fn open_folder(path: &Path) -> io::Result<File> {
    let flags = nix::libc::O_DIRECTORY | nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A path to an open folder; its own where there is no `/proc`.
fn inside(folder: &File, path: &Path) -> PathBuf {
    let own = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    if own.is_dir() { own } else { path.to_owned() }
}

/// 128 bits of chance, in hexadecimal digits.
fn token() -> io::Result<String> {
    let mut bytes = [0; DIGITS / 2];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// The contents first and the proof last, so that half a removal can be taken up again.
fn remove(folder: &File, path: &Path) -> io::Result<()> {
    let inside = inside(folder, path);
    for entry in fs::read_dir(&inside)? {
        let entry = entry?;
        if entry.file_name() == OWNER {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_file(inside.join(OWNER)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    fs::remove_dir(path)
}

/// Takes away what dead writers left in a folder, and puts back what they had in hand. What cannot be proven to be ours, and what belongs to a
/// writer that lives, is left alone.
pub fn sweep(parent: &Path) {
    sweep_with(parent, &mut |_| {});
}

/// The same; `dead` is told the token of each, before its folder goes.
pub fn sweep_with(parent: &Path, dead: &mut dyn FnMut(&str)) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(token) = name.to_str().and_then(|n| n.strip_prefix(PREFIX)) else { continue };
        if token.len() == DIGITS && token.bytes().all(|b| b.is_ascii_hexdigit()) {
            // One that cannot be taken away is not a reason to leave the others.
            let _ = sweep_one(parent, &entry.path(), token, dead);
        }
    }
}

fn sweep_one(parent: &Path, path: &Path, token: &str, dead: &mut dyn FnMut(&str)) -> io::Result<()> {
    // Nothing here is followed, and what was looked at is what is taken away, whatever bears its name by then.
    let opened = open_folder(path)?;
    let folder = opened.metadata()?;
    if folder.uid() != geteuid().as_raw() {
        return Ok(());
    }
    let inside = inside(&opened, path);
    // Nothing is waited for.
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let owner = match OpenOptions::new().read(true).custom_flags(flags).open(inside.join(OWNER)) {
        Ok(owner) => owner,
        // Killed before `owner` was there, or after it had gone: the folder is empty, or it is none of ours.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return fs::remove_dir(path),
        Err(e) => return Err(e),
    };
    if !owner.metadata()?.is_file() {
        return Ok(());
    }
    match owner.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(e)) => return Err(e),
    }
    let mut text = String::new();
    (&owner).take(LONGEST).read_to_string(&mut text)?;
    let mut lines = text.strip_prefix(MAGIC).unwrap_or_default().lines();
    if lines.next() != Some(&format!("{} {} {token}", folder.dev(), folder.ino())) {
        // Killed while `owner` was written: then there is nothing else.
        let begun = MAGIC.starts_with(&text) || text.starts_with(MAGIC);
        return if begun && fs::read_dir(&inside)?.count() == 1 { remove(&opened, path) } else { Ok(()) };
    }
    dead(token);
    if let Some(name) = lines.find_map(|line| bytes_of(line.strip_prefix(TARGET)?)) {
        put_back(parent, &inside, &name)?;
    }
    remove(&opened, path)
}

/// A folder that was moved away, and whose successor never came, goes back.
fn put_back(parent: &Path, inside: &Path, name: &[u8]) -> io::Result<()> {
    let target = parent.join(std::ffi::OsString::from_vec(name.to_owned()));
    let old = inside.join(OLD);
    let missing = matches!(fs::symlink_metadata(&target), Err(e) if e.kind() == io::ErrorKind::NotFound);
    // A name is one part of a path: an `owner` that says otherwise is not ours.
    let plain = !name.contains(&b'/') && target.file_name().is_some_and(|n| n.as_bytes() == name);
    if plain && missing && fs::symlink_metadata(&old).is_ok() {
        fs::rename(old, target)?;
    }
    Ok(())
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits.chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("penstock-scratch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn left(parent: &Path) -> usize {
        fs::read_dir(parent).unwrap().count()
    }

    #[test]
    fn it_goes_when_dropped_and_stays_while_its_writer_lives() {
        let parent = place("drop");
        let scratch = Scratch::new(&parent).unwrap();
        fs::create_dir(scratch.path().join("sub")).unwrap();
        fs::write(scratch.path().join("sub/x"), "1").unwrap();
        sweep(&parent);
        assert_eq!(left(&parent), 1, "we live");
        drop(scratch);
        assert_eq!(left(&parent), 0);
        fs::remove_dir(parent).unwrap();
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let parent = place("link");
        let (victim, moved) = (parent.join("victim"), parent.join("moved"));
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("new"), "mine").unwrap();
        for dropped in [true, false] {
            let scratch = Scratch::new(&parent).unwrap();
            let path = scratch.path().to_owned();
            fs::write(scratch.inside().join("new"), "ours").unwrap();
            fs::rename(&path, &moved).unwrap();
            std::os::unix::fs::symlink(&victim, &path).unwrap();
            if dropped {
                drop(scratch);
            } else {
                scratch.owner.unlock().unwrap();
                std::mem::forget(scratch);
                sweep(&parent);
            }
            assert_eq!(fs::read_to_string(victim.join("new")).unwrap(), "mine");
            fs::remove_file(path).unwrap();
            fs::remove_dir_all(&moved).unwrap();
        }
        fs::remove_dir_all(parent).unwrap();
    }

    /// What a killed writer leaves: all is there, and nobody holds the lock.
    fn killed(parent: &Path) -> PathBuf {
        let scratch = Scratch::new(parent).unwrap();
        let path = scratch.path().to_owned();
        scratch.owner.unlock().unwrap();
        std::mem::forget(scratch);
        path
    }

    #[test]
    fn the_next_one_takes_away_what_a_killed_one_left() {
        let parent = place("killed");
        let path = killed(&parent);
        fs::write(path.join("new"), "half").unwrap();
        let mut dead = Vec::new();
        sweep_with(&parent, &mut |token| dead.push(format!("{PREFIX}{token}")));
        assert_eq!(
            (left(&parent), dead),
            (0, vec![path.file_name().unwrap().to_string_lossy().into_owned()])
        );
        // Killed at every moment of the making.
        for text in ["", "a folder", MAGIC, &format!("{MAGIC}12 3")] {
            let path = parent.join(format!("{PREFIX}{}", "0".repeat(DIGITS)));
            fs::create_dir(&path).unwrap();
            fs::write(path.join(OWNER), text).unwrap();
            sweep(&parent);
            assert_eq!(left(&parent), 0, "{text}");
        }
        fs::create_dir(parent.join(format!("{PREFIX}{}", "0".repeat(DIGITS)))).unwrap();
        sweep(&parent);
        assert_eq!(left(&parent), 0);
        fs::remove_dir(parent).unwrap();
    }

    #[test]
    fn a_name_alone_proves_nothing() {
        let parent = place("strangers");
        let name = |digit: &str| parent.join(format!("{PREFIX}{}", digit.repeat(DIGITS)));
        fs::write(name("0"), "a file").unwrap();
        fs::create_dir(name("1")).unwrap();
        fs::write(name("1").join("notes"), "mine").unwrap();
        // A copy of a folder of ours, under another name and under its own name elsewhere.
        let path = killed(&parent);
        let proof = fs::read(path.join(OWNER)).unwrap();
        fs::create_dir(name("2")).unwrap();
        fs::write(name("2").join(OWNER), &proof).unwrap();
        fs::write(name("2").join("notes"), "mine").unwrap();
        let elsewhere = parent.join("elsewhere");
        let copy = elsewhere.join(path.file_name().unwrap());
        fs::create_dir_all(&copy).unwrap();
        fs::write(copy.join(OWNER), &proof).unwrap();
        fs::write(copy.join("notes"), "mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, name("3")).unwrap();
        sweep(&parent);
        sweep(&elsewhere);
        assert!(!path.exists());
        assert!(name("0").exists() && name("1").join("notes").exists() && name("2").join("notes").exists());
        assert!(copy.join("notes").exists() && name("3").exists());
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn what_was_in_hand_goes_back() {
        let parent = place("back");
        for (name, goes) in [(&b"run"[..], true), (b"../run", false), (b"..", false)] {
            let mut scratch = Scratch::new(&parent).unwrap();
            scratch.note_target(name).unwrap();
            fs::create_dir(scratch.path().join(OLD)).unwrap();
            fs::write(scratch.path().join("old/record.json"), "{}").unwrap();
            scratch.owner.unlock().unwrap();
            std::mem::forget(scratch);
            sweep(&parent);
            assert_eq!(parent.join("run/record.json").exists(), goes);
            let _ = fs::remove_dir_all(parent.join("run"));
            assert_eq!(left(&parent), 0);
        }
        fs::remove_dir(parent).unwrap();
    }
}
