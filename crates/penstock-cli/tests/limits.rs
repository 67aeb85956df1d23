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

/// Scripts that meet the limits behind their first command: where that is noticed, and what is said. Those of loops, of commands and of
/// time take a minute each: they are below, and with lower limits in `penstock-shell`.
fn scripts() -> Vec<(String, u32, &'static str)> {
    let within = |open: &str, close: &str, n| format!("echo {}x{}", open.repeat(n), close.repeat(n));
    let shells = "functions, sourced files and shells within each other: 16";
    let held = "bytes that pipes and expansions hold: 268435456";
    let all = [
        ("a='eval \"$a\"'; eval \"$a\"".to_owned(), 2, "eval within eval: 100"),
        ("f() { f; }; f".to_owned(), 2, shells),
        ("export a='bash -c \"$a\"'; bash -c \"$a\"".to_owned(), 2, "shells within each other: 8"),
        (within("$(echo ", ")", 60), 2, "$( ) within each other: 32"),
        // It is met while the line is read: the place is that of the command before.
        (within("${x:-", "}", 5000), 1, "${ } within each other: 100"),
        (
            format!("echo $((1{}))", "+1".repeat(20_000)),
            2,
            "operators and parentheses of one arithmetic expression: 1000",
        ),
        (
            "a=x; while :; do a=\"$a$a\"; done".to_owned(),
            2,
            "memory limit exceeded: variable byte limit (33554432)",
        ),
        (
            format!("a=x; for i in {{1..24}}; do a=\"$a$a\"; done; cat << E | wc -c\n{}\nE", "$a".repeat(18)),
            2,
            held,
        ),
        (format!("echo x{}", " | cat".repeat(1010)), 2, "jobs in the background: 1000"),
        ("for i in {1..1010}; do sleep 9 & done 2> /dev/null".to_owned(), 3, "jobs in the background: 1000"),
        ("cat /dev/urandom | head -c 5M | wc -c".to_owned(), 3, "bytes of a device read at once: 1048576"),
        ("head -c 35M /dev/zero; head -c 35M /dev/zero".to_owned(), 2, "bytes of output: 67108864"),
    ];
    all.to_vec()
}

/// What each command that runs scripts says of one, all of them at once.
fn each_tells(name: &str, limit: &str, line: u32, what: &[&str]) {
    let folder = scratch(name);
    let whole = "tc qdisc add dev eth0 root handle 1: prio\n";
    std::fs::write(folder.join("whole.sh"), whole).unwrap();
    std::fs::write(folder.join("s.sh"), format!("{whole}{limit}\ntc qdisc del dev eth0 root\n")).unwrap();
    let packet = "udp 10.0.0.1:1 > 10.0.0.2:2 len 100";
    let calls: [&[&str]; 6] = [
        &["explain", "--dev", "eth0", "--packet", packet, "s.sh"],
        &["explain", "--dev", "eth0", "--all", "s.sh"],
        &["diff", "--dev", "eth0", "whole.sh", "s.sh"],
        &["diff", "--dev", "eth0", "s.sh", "whole.sh"],
        &["check", "s.sh"],
        &["shell", "s.sh"],
    ];
    let told = |words: &[&str], what: &str| {
        let met = format!("stopped at a limit of the virtual machine: {what}");
        match words[0] {
            // check has a form of its own for places.
            "check" => format!("s.sh:{line}: error PS005: {met}"),
            _ => format!("line {line}: {met}"),
        }
    };
    std::thread::scope(|scope| {
        for words in calls {
            let (folder, told) = (&folder, &told);
            scope.spawn(move || {
                let done = penstock(folder, words);
                let stderr = String::from_utf8_lossy(&done.stderr);
                let said = format!(
                    "{stderr}{}",
                    if words[0] == "check" { String::from_utf8_lossy(&done.stdout) } else { "".into() }
                );
                assert_eq!(done.status.code(), Some(2), "{limit:.60} {words:?}: {stderr:.300}");
                assert!(
                    what.iter().any(|what| said.contains(&told(words, what))),
                    "{limit:.60} {words:?}: {said:.400}"
                );
                let behind = !matches!(words[0], "explain" | "diff")
                    || said.contains(": the commands behind this place are not looked at");
                assert!(behind, "{limit:.60} {words:?}: {said:.400}");
            });
        }
    });
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn explain_diff_shell_and_check_tell_it() {
    for (limit, line, said) in scripts() {
        each_tells("scripts", &limit, line, &[said]);
    }
    let folder = scratch("whole");
    std::fs::write(folder.join("whole.sh"), "tc qdisc add dev eth0 root handle 1: prio\n").unwrap();
    let packet = "udp 10.0.0.1:1 > 10.0.0.2:2 len 100";
    // What is run to its end has its own status.
    let done = penstock(&folder, &["explain", "--dev", "eth0", "--packet", packet, "whole.sh"]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Whichever is met first: that depends on how fast this computer is.
#[test]
#[ignore = "takes some minutes of all processors"]
fn what_takes_for_ever_is_told() {
    let time = "time without a word, by this computer's clock: 60 s";
    each_tells("loop", "while :; do :; done", 2, &["commands and turns of loops: 5000000", time]);
    each_tells(
        "awk",
        "awk 'BEGIN { while (1) x++ }'",
        3,
        &["awk: fatal: loop iteration limit (5000000) exceeded", time],
    );
    let commands = "for ((;;)); do tc qdisc show dev eth0 > /dev/null; done";
    each_tells("commands", commands, 2, &["commands given to the machine: 250000", time]);
}

#[test]
fn a_run_is_refused_and_leaves_nothing() {
    let folder = scratch("run");
    for (limit, _, said) in scripts() {
        let said = format!("stopped at a limit of the virtual machine: {said}");
        for may_fail in [false, true] {
            let text = format!(
                "duration = \"1s\"\nsetup_may_fail = {may_fail}\n[host.a]\neth0 = \"10.0.0.1/24\"\n\
                 setup = '''\nfor i in 1; do tc qdisc add dev eth0 root prio; done\n{limit}\n'''\n\
                 [host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"1mbit\"\n"
            );
            std::fs::write(folder.join("x.toml"), text).unwrap();
            let done = penstock(&folder, &["run", "x.toml", "--out", "out"]);
            let stderr = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(2), "{limit:.60}: {stderr:.400}");
            assert!(stderr.contains(&said) && stderr.contains("x.toml"), "{limit:.60}: {stderr:.400}");
            assert!(!folder.join("out").exists(), "{stderr}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}
