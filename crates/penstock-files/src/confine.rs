//! Giving up rights: from some moment on a thread, and all that it starts, reaches no files but those it still needs.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, path_beneath_rules,
};
use std::path::{Path, PathBuf};

/// Random numbers for names of ours.
const CHANCE: &str = "/dev/urandom";

/// From now on this thread, and all it starts, reads and writes below these folders only, and (where the kernel is 6.7 or later) opens no TCP
/// connection. A folder that is not there yet stands for the nearest one above that is. What is open already stays so.
///
/// Answers whether it is so: kernels before 5.19 cannot do it, and then nothing is changed.
pub fn confine(folders: &[PathBuf]) -> bool {
    let there = folders
        .iter()
        .filter_map(|f| std::path::absolute(f).ok()?.ancestors().find(|a| a.exists()).map(Path::to_owned));
    restrict(&there.collect::<Vec<_>>()).is_ok_and(|status| status != RulesetStatus::NotEnforced)
}

fn restrict(folders: &[PathBuf]) -> Result<RulesetStatus, RulesetError> {
    // With the first version of Landlock no file can be moved from one folder to another, as a replacement is.
    let least = AccessFs::from_all(ABI::V2);
    let all = AccessFs::from_all(ABI::V5);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(least)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .create()?;
    let rules = rules.add_rules(path_beneath_rules(folders, all))?;
    let rules = rules.add_rules(path_beneath_rules([CHANCE], AccessFs::from_read(ABI::V5)))?;
    Ok(rules.restrict_self()?.ruleset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;

    #[test]
    fn nothing_else_is_reached() {
        let place = std::env::temp_dir().join(format!("penstock-confine-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(place.join("in/runs/r")).unwrap();
        fs::create_dir_all(place.join("out")).unwrap();
        fs::write(place.join("in/a"), "a").unwrap();
        fs::write(place.join("out/b"), "b").unwrap();
        let there = place.clone();
        // It holds for this thread only.
        let confined = std::thread::spawn(move || {
            if !confine(&[there.join("in/runs/none/yet"), there.join("in")]) {
                let _ = writeln!(std::io::stderr(), "SKIPPED what Landlock keeps away: this kernel has none");
                return false;
            }
            let reached =
                [fs::read(there.join("out/b")).is_ok(), fs::write(there.join("out/c"), "c").is_ok()];
            assert_eq!(reached, [false, false]);
            assert!(fs::read("/etc/passwd").is_err() && fs::read_dir("/").is_err());
            assert!(fs::rename(there.join("in/a"), there.join("out/a")).is_err());
            assert!(std::process::Command::new("/bin/true").status().is_err());
            crate::replace(&there.join("in/a"), "new").unwrap();
            let any = |_: &Path| Ok(());
            crate::replace_folder(&there.join("in/runs/r"), &any, &mut |new| fs::write(new.join("x"), "1"))
                .unwrap();
            crate::replace_folder(&there.join("in/runs/q"), &any, &mut |new| fs::write(new.join("x"), "1"))
                .unwrap();
            true
        });
        if confined.join().unwrap() {
            assert_eq!(fs::read_to_string(place.join("in/a")).unwrap(), "new");
            assert!(place.join("in/runs/r/x").exists() && place.join("in/runs/q/x").exists());
            assert!(place.join("out/b").exists() && !place.join("out/c").exists());
        }
        fs::remove_dir_all(place).unwrap();
    }
}
