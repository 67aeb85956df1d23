//! The files of the page: those of a folder, or those within the program.

use penstock_files::Roots;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Most bytes of a file of the page.
const LARGEST: u64 = 64 << 20;

#[cfg(feature = "page")]
static EMBEDDED: include_dir::Dir<'_> = include_dir::include_dir!("$CARGO_MANIFEST_DIR/../../web/dist");

/// Where the page comes from.
#[derive(Clone, Debug)]
pub enum Page {
    /// A folder that `cargo xtask web` built.
    Folder(PathBuf),
    /// The program itself, where it was built with the page.
    Embedded,
    /// Nowhere: there are the runs alone.
    None,
}

/// Whether this program was built with the page in it.
pub fn is_embedded() -> bool {
    cfg!(feature = "page")
}

/// The page as it is asked for.
pub(crate) enum Files {
    Folder(PathBuf, Roots),
    Embedded,
    None,
}

impl Files {
    pub(crate) fn open(page: Page) -> Result<Files, String> {
        match page {
            Page::Folder(folder) => {
                let roots = Roots::new().allow(&folder)?;
                if !folder.join("index.html").is_file() {
                    return Err(format!(
                        "{} is not a folder of the page: cargo xtask web builds it",
                        folder.display()
                    ));
                }
                Ok(Files::Folder(folder, roots))
            }
            Page::Embedded if is_embedded() => Ok(Files::Embedded),
            Page::Embedded | Page::None => Ok(Files::None),
        }
    }

    /// A file by its name; the page lies in one folder, without others below it.
    pub(crate) fn read(&self, name: &str) -> Option<Cow<'static, [u8]>> {
        match self {
            Files::Folder(folder, roots) => {
                let bytes = roots.read(&folder.join(Path::new(name)), LARGEST).ok()?;
                Some(Cow::Owned(bytes))
            }
            Files::Embedded => embedded(name).map(Cow::Borrowed),
            Files::None => None,
        }
    }
}

#[cfg(feature = "page")]
fn embedded(name: &str) -> Option<&'static [u8]> {
    EMBEDDED.get_file(name).map(include_dir::File::contents)
}

#[cfg(not(feature = "page"))]
fn embedded(_: &str) -> Option<&'static [u8]> {
    None
}
