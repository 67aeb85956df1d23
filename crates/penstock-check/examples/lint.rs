//! Checks the scripts whose paths are given: `cargo run -p penstock-check --example lint -- FILE…`.
//!
//! Without one it checks a script of three lines. With `--fix` first it prints each script with the safe fixes made.

use penstock_check::{Settings, Which, examine, fixed, form};
use penstock_shell::Script;

const TEXT: &str = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
                    tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                    tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit\n";

fn main() -> Result<(), std::io::Error> {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let fix = paths.first().is_some_and(|p| p == "--fix");
    paths.retain(|p| p != "--fix");
    let mut all = vec![("x.sh".to_owned(), TEXT.to_owned())];
    if !paths.is_empty() {
        let read = |p: String| std::fs::read_to_string(&p).map(|text| (p, text));
        all = paths.into_iter().map(read).collect::<Result<_, _>>()?;
    }
    for (name, text) in all {
        let script = Script { text, name, ..Script::default() };
        let answer = examine(&script, &Settings::default());
        if fix {
            print!("{}", fixed(&script.text, &answer.findings, Which::Safe).0);
        } else {
            print!("{}", form::text(&answer.findings, &answer.coverage, &[(&script.name, &script.text)]));
        }
    }
    Ok(())
}
