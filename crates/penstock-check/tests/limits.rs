//! A script that is not run to its end is never found to be well.

use penstock_check::{Settings, check, exit_status};
use penstock_shell::Script;

fn found(text: &str) -> (u8, Vec<(&'static str, u32, String)>) {
    let script = Script { text: text.to_owned(), name: "x.sh".to_owned(), ..Script::default() };
    let findings = check(&script, &Settings::default());
    let said = findings.iter().map(|f| (f.code, f.line, f.message.clone())).collect();
    (exit_status(&findings), said)
}

#[track_caller]
fn stopped(text: &str, line: u32, limit: &str) {
    let (status, said) = found(text);
    let told = said.iter().any(|(code, at, why)| *code == "PS005" && *at == line && why.contains(limit));
    assert!(told && status == 2, "{text:.80}: {said:?}, not {limit}");
}

#[test]
fn a_comment_of_ten_million_bytes_hides_nothing() {
    let errors = "tc qdisc add dev eth0 root nonsense\ntc class add dev eth0 parent 1: classid 1:1 htb\n";
    let (status, short) = found(errors);
    assert_eq!((status, short.len()), (2, 2), "{short:?}");
    let (status, long) = found(&format!("{errors}# {}\n", "x".repeat(10_000_000)));
    assert_eq!((status, long), (2, short));
}

#[test]
fn a_limit_is_an_error() {
    stopped("a='eval \"$a\"'\neval \"$a\"\n", 2, "eval within eval: 100");
    stopped("tc qdisc add dev eth0 root sfq\n\"$0\"\n", 2, "scripts that call themselves");
    stopped("f() { f; }\nf\n", 1, "functions, sourced files and shells within each other: 16");
    stopped("echo a{1..10001}\n", 1, "braces of one word");
    stopped(&format!("# {}\n", "x".repeat(70 << 20)), 1, "the script and its files: 67108864 bytes");
    // Whatever the script does with its errors.
    stopped("f() { f; }\nf 2> /dev/null || true\nexit 0\n", 1, "functions, sourced files and shells");
}

#[test]
fn python_s_limits_are_errors() {
    let python = |text: &str| format!("#!/usr/bin/env python3\nimport os\n{text}");
    stopped(
        &python(&format!("x = {}1{}\n", "(".repeat(3000), ")".repeat(3000))),
        3,
        "SyntaxError: too many nested",
    );
    stopped(&python(&format!("x = 1{}\n", "+1".repeat(20_000))), 3, "RecursionError");
    stopped(&python(&format!("x = a{}\n", ".b".repeat(20_000))), 3, "RecursionError");
    stopped(
        &python(&format!("x = 'a'\n{}", "x = x + x\n".repeat(60))),
        1,
        "bytes of strings and lists made: 268435456",
    );
    stopped(&python("x = '%999999999d' % 5\n"), 1, "width of a format: 1000000");
    stopped(
        &python("for i in range(10**12):\n    os.system('tc qdisc show')\n"),
        1,
        "bytes of strings and lists",
    );
    stopped(
        &python("os.system('tc qdisc add dev eth0 root sfq')\nos.system('f() { f; }; f')\n"),
        4,
        "functions, sourced files and shells within each other: 16",
    );
    // Where a value is not known either.
    stopped(&python("x = open('f').read()\nos.system('tc ' + x)\ny = 'a' * 10**12\n"), 4, "bytes of strings");
}

#[test]
fn classes_at_the_ingress_hook() {
    // These were panics; the kernel's words, recorded from 6.12.
    let text =
        "tc qdisc add dev eth0 clsact\ntc class add dev eth0 parent ffff: classid ffff:1 htb rate 5mbit\n";
    let (status, said) = found(text);
    assert!(
        status == 2 && said.iter().any(|s| s.1 == 2 && s.2.contains("Operation not supported")),
        "{said:?}"
    );
    let (status, said) = found("tc qdisc add dev eth0 ingress\ntc class del dev eth0 classid ffff:1\n");
    assert!(status > 0 && said.iter().all(|s| s.1 <= 2), "{said:?}");
}
