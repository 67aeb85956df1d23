//! Files and folders replaced: the new one is written beside the old one, then takes its name.

use crate::scratch::{NEW, OLD, Scratch, sweep};
use nix::fcntl::AtFlags;
use nix::unistd::AccessFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Most symbolic links that are followed one after the other, as the kernel's own.
const LINKS: usize = 40;

/// Writes a file whole or not at all.
///
/// # Errors
/// It cannot be written; then what was there is there.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut new = Replacement::begin(path)?;
    new.write_all(bytes.as_ref())?;
    new.commit()
}

/// A file that is being written, and takes the place of the old one when it is whole.
pub struct Replacement {
    file: File,
    /// Where it goes and what it is written in; none for what cannot be replaced: a device, a pipe.
    place: Option<(PathBuf, Scratch)>,
}

impl Replacement {
    /// Begins one. A symbolic link stays and what it points to is replaced; mode and (where that is allowed) owner stay. A device or a pipe is
    /// written to as it is.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub fn begin(path: &Path) -> io::Result<Replacement> {
        let target = followed(path)?;
        let old = match fs::metadata(&target) {
            Ok(old) if old.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(old) if !old.is_file() => {
                return Ok(Replacement { file: OpenOptions::new().write(true).open(&target)?, place: None });
            }
            Ok(old) => Some(old),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        if old.is_some() {
            // A folder may be written to where a file in it may not.
            let at = nix::fcntl::AT_FDCWD;
            nix::unistd::faccessat(at, &target, AccessFlags::W_OK, AtFlags::AT_EACCESS)?;
        }
        let parent = folder_of(&target);
        sweep(parent);
        let scratch = Scratch::new(parent)?;
        let file = OpenOptions::new().create_new(true).write(true).open(scratch.inside().join(NEW))?;
        if let Some(old) = old {
            let new = file.metadata()?;
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                // Only root gives files away; what is written is then the writer's own, as a new file would be.
                let _ = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
            }
            let now = file.metadata()?;
            let same = (old.uid(), old.gid()) == (now.uid(), now.gid());
            // Set-id bits are for the owner they were given to.
            let mode = old.mode() & if same { 0o7777 } else { 0o777 };
            file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        Ok(Replacement { file, place: Some((target, scratch)) })
    }

    /// Puts it in its place; what is not committed leaves nothing.
    ///
    /// # Errors
    /// It cannot be put there; then what was there is there, or all of the new.
    pub fn commit(self) -> io::Result<()> {
        let Some((target, scratch)) = self.place else { return Ok(()) };
        self.file.sync_all()?;
        fs::rename(scratch.inside().join(NEW), &target)?;
        sync_folder(folder_of(&target))
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a folder whole or not at all: `fill` writes its contents into a folder that is not seen yet. `spare` says whether what is there may
/// go, with a sentence why not; it is asked before anything is written, and again of what was taken away.
///
/// # Errors
/// It cannot be written, or what is there must stay; then what was there is there.
pub fn replace_folder(
    path: &Path,
    spare: &dyn Fn(&Path) -> Result<(), String>,
    fill: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let target = followed(path)?;
    let parent = folder_of(&target);
    fs::create_dir_all(parent)?;
    sweep(parent);
    let refuse = |why: String| io::Error::new(io::ErrorKind::AlreadyExists, why);
    let old = match fs::metadata(&target) {
        Ok(old) => {
            spare(&target).map_err(refuse)?;
            Some(old)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    let mut scratch = Scratch::new(parent)?;
    let new = scratch.inside().join(NEW);
    fs::create_dir(&new)?;
    if let Some(old) = &old {
        fs::set_permissions(&new, fs::Permissions::from_mode(old.mode() & 0o7777))?;
    }
    fill(&new)?;
    sync_all(&new)?;
    if old.is_none() {
        fs::rename(&new, &target)?;
        return sync_folder(parent);
    }
    exchange(&mut scratch, &target)?;
    let was = if new.exists() { new } else { scratch.inside().join(OLD) };
    if let Err(why) = spare(&was) {
        // Somebody has put something into it in the meantime.
        exchange_back(&was, &target, &scratch)?;
        return Err(refuse(why));
    }
    sync_folder(parent)
}

/// `new` and the target change places; where the system cannot do that in one step, the old one is moved aside, and a note says where it
/// belongs.
fn exchange(scratch: &mut Scratch, target: &Path) -> io::Result<()> {
    let new = scratch.inside().join(NEW);
    match swap(&new, target) {
        Err(e) if can_not(&e) => {}
        done => return done,
    }
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    scratch.note_target(name.as_bytes())?;
    let old = scratch.inside().join(OLD);
    fs::rename(target, &old)?;
    fs::rename(&new, target).inspect_err(|_| {
        let _ = fs::rename(&old, target);
    })
}

fn exchange_back(was: &Path, target: &Path, scratch: &Scratch) -> io::Result<()> {
    match swap(was, target) {
        Err(e) if can_not(&e) => {
            fs::rename(target, scratch.inside().join(NEW))?;
            fs::rename(was, target)
        }
        done => done,
    }
}

/// File systems and kernels without the exchange say one of these.
fn can_not(e: &io::Error) -> bool {
    [nix::libc::ENOSYS, nix::libc::EINVAL, nix::libc::ENOTSUP]
        .into_iter()
        .any(|n| e.raw_os_error() == Some(n))
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn swap(a: &Path, b: &Path) -> io::Result<()> {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    Ok(renameat2(AT_FDCWD, a, AT_FDCWD, b, RenameFlags::RENAME_EXCHANGE)?)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn swap(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(nix::libc::ENOSYS))
}

/// Where a path leads when its last part is a symbolic link, to something or to nothing.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(to) => path = folder_of(&path).join(to),
            // No link, or nothing there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::from_raw_os_error(nix::libc::ELOOP))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Sees to it that the names in a folder are on the disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(path)?.sync_all() {
        // Some file systems have nothing to do for folders, and say so.
        Err(e) if can_not(&e) => Ok(()),
        done => done,
    }
}

/// Brings a folder and all below it to the disk. With many files the whole file system is asked once: that costs less than one wait for each.
fn sync_all(folder: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if files_below(folder, MANY)? >= MANY {
        return Ok(nix::unistd::syncfs(&File::open(folder)?)?);
    }
    sync_each(folder)
}

/// From so many files on the file system is asked.
#[cfg(target_os = "linux")]
const MANY: usize = 64;

/// How many files a folder holds, counted up to `most`.
#[cfg(target_os = "linux")]
fn files_below(folder: &Path, most: usize) -> io::Result<usize> {
    let mut found = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        found += match entry.file_type()?.is_dir() {
            true => files_below(&entry.path(), most)?,
            false => 1,
        };
        if found >= most {
            break;
        }
    }
    Ok(found)
}

fn sync_each(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_each(&entry.path())
        } else {
            File::open(entry.path())?.sync_all()
        }?;
    }
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = std::env::temp_dir().join(format!("penstock-replace-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Place(path)
        }
        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> =
                entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn mode_and_link_stay_and_nothing_is_left() {
        let place = Place::new("mode");
        let (file, link) = (place.0.join("s.sh"), place.0.join("link"));
        replace(&file, "one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
        std::os::unix::fs::symlink("s.sh", &link).unwrap();
        let inode = fs::metadata(&file).unwrap().ino();
        replace(&link, "two").unwrap();
        let now = fs::metadata(&file).unwrap();
        assert_eq!((text(&file).as_str(), now.mode() & 0o7777), ("two", 0o751));
        assert!(now.ino() != inode && fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(place.names(), ["link", "s.sh"]);
        // A link to what is not there makes it.
        std::os::unix::fs::symlink("new", place.0.join("to-new")).unwrap();
        replace(&place.0.join("to-new"), "three").unwrap();
        assert_eq!(text(&place.0.join("new")), "three");
        std::os::unix::fs::symlink("loop", place.0.join("loop")).unwrap();
        assert!(replace(&place.0.join("loop"), "x").is_err());
        assert!(replace(&place.0, "x").is_err(), "a folder is not a file");
        replace(Path::new("/dev/null"), "x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn what_is_not_committed_leaves_the_old() {
        let place = Place::new("drop");
        let file = place.0.join("a");
        replace(&file, "old").unwrap();
        let mut new = Replacement::begin(&file).unwrap();
        new.write_all(b"half").unwrap();
        drop(new);
        assert_eq!((text(&file).as_str(), place.names()), ("old", vec!["a".to_owned()]));
    }

    #[test]
    fn a_folder_is_replaced_or_stays() {
        let place = Place::new("folder");
        let folder = place.0.join("runs/x");
        let write =
            |name: &'static str, words: &'static str| move |new: &Path| fs::write(new.join(name), words);
        let any = |_: &Path| Ok(());
        replace_folder(&folder, &any, &mut write("a", "1")).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o705)).unwrap();
        replace_folder(&folder, &any, &mut write("b", "2")).unwrap();
        assert!(!folder.join("a").exists() && text(&folder.join("b")) == "2");
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o705);
        let refused = replace_folder(&folder, &|_| Err("it is yours".to_owned()), &mut write("c", "3"));
        assert_eq!(refused.unwrap_err().to_string(), "it is yours");
        let failed = replace_folder(&folder, &any, &mut |_| Err(io::Error::other("full")));
        assert_eq!(
            (failed.unwrap_err().to_string().as_str(), text(&folder.join("b")).as_str()),
            ("full", "2")
        );
        // What comes into it while the new one is written is seen after the exchange.
        let added = |was: &Path| match was.join("late").exists() {
            true => Err("late".to_owned()),
            false => Ok(()),
        };
        let mut late = |new: &Path| {
            fs::write(folder.join("late"), "")?;
            fs::write(new.join("d"), "4")
        };
        assert_eq!(replace_folder(&folder, &added, &mut late).unwrap_err().to_string(), "late");
        assert!(folder.join("b").exists() && folder.join("late").exists() && !folder.join("d").exists());
        let there: Vec<_> = fs::read_dir(place.0.join("runs")).unwrap().collect();
        assert_eq!(there.len(), 1, "{there:?}");
    }
}
