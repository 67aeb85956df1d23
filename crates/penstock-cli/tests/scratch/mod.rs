//! A folder of a test's own, which ends with it.

use std::path::PathBuf;

/// The folder.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// An empty one; of those with one name in one process there is one at a time.
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("penstock-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a program printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
