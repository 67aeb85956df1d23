//! Bash's language as shaping scripts use it: `language/NAME.sh` gives here what bash 5.2 gave, kept in `NAME.out`.

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Kept, Script, run};
use std::path::Path;

fn shown(name: &str, text: String, args: &[&str]) -> String {
    let mut host = Host::new("penstock", Kernel::V6_12, 1);
    let mut kept = Kept::default();
    let args = args.iter().map(|&a| a.to_owned()).collect();
    let script = Script { text, name: format!("./{name}.sh"), args, ..Script::default() };
    let status = run(&script, &mut At { host: &mut host, now: Time::ZERO }, &mut kept).unwrap();
    let stderr = if kept.stderr.is_empty() { "" } else { "--- stderr\n" };
    format!("{}{stderr}{}--- status {status}\n", kept.stdout, kept.stderr)
}

#[test]
fn as_bash_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().to_str()?.strip_suffix(".sh").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() > 15);
    for name in &names {
        let args: &[&str] =
            if name == "getopts" { &["-d", "eth0", "-r", "5mbit", "-v", "x", "y"] } else { &[] };
        let first = shown(name, read(&format!("{name}.sh")), args);
        assert_eq!(first, read(&format!("{name}.out")), "{name}");
        assert_eq!(first, shown(name, read(&format!("{name}.sh")), args), "{name}: the same each time");
    }
}
