//! A script that is stopped at a limit of the interpreter: every command that runs scripts says so, with the limit and the place, and
//! its exit status is that of an error.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn penstock(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_penstock"))
        .args(words)
        .current_dir(folder)
        .env("PENSTOCK_STATE", folder.join("state"))
        .env_remove("PENSTOCK_KERNEL")
        .output()
        .unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("penstock-limits-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A script that meets each limit behind its first command, and what is said.
const SCRIPTS: [(&str, &str); 1] = [(
    "a='eval \"$a\"'; eval \"$a\"",
    "line 2: stopped at a limit of the virtual machine: eval within eval: 100",
)];

#[test]
fn explain_diff_shell_and_check_tell_it() {
    let folder = scratch("scripts");
    let whole = "tc qdisc add dev eth0 root handle 1: prio\n";
    std::fs::write(folder.join("whole.sh"), whole).unwrap();
    let packet = "udp 10.0.0.1:1 > 10.0.0.2:2 len 100";
    for (limit, said) in SCRIPTS {
        std::fs::write(folder.join("s.sh"), format!("{whole}{limit}\ntc qdisc del dev eth0 root\n")).unwrap();
        let behind = format!("{said}: the commands behind this place are not looked at");
        // check has a form of its own for places.
        let found = said.replace("line 2: ", "s.sh:2: error PS005: ");
        let calls: [(&[&str], &str); 6] = [
            (&["explain", "--dev", "eth0", "--packet", packet, "s.sh"], &behind),
            (&["explain", "--dev", "eth0", "--all", "s.sh"], &behind),
            (&["diff", "--dev", "eth0", "whole.sh", "s.sh"], &behind),
            (&["diff", "--dev", "eth0", "s.sh", "whole.sh"], &behind),
            (&["check", "s.sh"], &found),
            (&["shell", "s.sh"], said),
        ];
        for (words, want) in calls {
            let done = penstock(&folder, words);
            let stderr = String::from_utf8_lossy(&done.stderr);
            let stdout = String::from_utf8_lossy(&done.stdout);
            assert_eq!(done.status.code(), Some(2), "{words:?}: {stderr}");
            let told = stderr.contains(want) || words[0] == "check" && stdout.contains(want);
            assert!(told, "{words:?} says {stderr}{stdout:.300}, not {want}");
        }
    }
    // What is run to its end has its own status.
    let done = penstock(&folder, &["explain", "--dev", "eth0", "--packet", packet, "whole.sh"]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_run_is_refused_and_leaves_nothing() {
    let folder = scratch("run");
    for (limit, said) in SCRIPTS {
        let said = said.split_once(": ").unwrap().1;
        for may_fail in [false, true] {
            let text = format!(
                "duration = \"1s\"\nsetup_may_fail = {may_fail}\n[host.a]\neth0 = \"10.0.0.1/24\"\n\
                 setup = '''\nfor i in 1; do tc qdisc add dev eth0 root prio; done\n{limit}\n'''\n\
                 [host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"1mbit\"\n"
            );
            std::fs::write(folder.join("x.toml"), text).unwrap();
            let done = penstock(&folder, &["run", "x.toml", "--out", "out"]);
            let stderr = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(2), "{stderr}");
            assert!(stderr.contains(said) && stderr.contains("x.toml"), "{stderr}");
            assert!(!folder.join("out").exists(), "{stderr}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}
