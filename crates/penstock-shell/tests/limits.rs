//! Where a script goes too far it is stopped, and told which limit that was, its value, and where. What is honest runs.

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Kept, Limits, Script, run_within};
use std::time::Duration;

fn done(limits: &Limits, text: &str) -> (Result<i32, String>, Kept) {
    let mut host = Host::new("penstock", Kernel::V6_12, 1);
    host.add_device("eth0");
    let mut kept = Kept::default();
    let script = Script { text: text.to_owned(), name: "x.sh".to_owned(), ..Script::default() };
    let status = run_within(limits, &script, &mut At { host: &mut host, now: Time::ZERO }, &mut kept);
    (status, kept)
}

/// Small enough for tests.
fn small() -> Limits {
    Limits {
        steps: 20_000,
        commands: 50,
        work: 2_000_000,
        output: 100_000,
        pipes: 4 << 20,
        variables: 100_000,
        names: 2000,
        ..Limits::default()
    }
}

#[track_caller]
fn stopped(text: &str, line: u32, limit: &str) {
    let (status, kept) = done(&small(), text);
    let place = if line > 0 { format!("line {line}: ") } else { String::new() };
    let want = format!("{place}stopped at a limit of the virtual machine: {limit}");
    assert!(status.as_ref().is_err_and(|why| why.starts_with(&want)), "{text:.60}: {status:?}, not {want}");
    assert!(kept.stdout.len() <= 200_000 && kept.stderr.len() <= 200_000, "{text}");
}

#[test]
fn what_has_no_end_is_stopped() {
    stopped("\nwhile :; do :; done\n", 2, "commands and turns of loops: 20000");
    stopped("\n\nwhile :; do\n x=1\n y=2\ndone\n", 3, "commands and turns of loops: 20000");
    let array = "while :; do a+=(0123456789012345678901234567890123456789 0123456789); done\n";
    stopped(array, 1, "memory limit exceeded: variable byte limit (100000)");
    let many = "for i in {1..2100}; do eval \"x$i=1\"; done\n";
    stopped(many, 1, "memory limit exceeded: variable count limit (2000)");
    let large = "a=({1..9000} {1..9000} {1..9000})\n";
    stopped(large, 1, "memory limit exceeded: variable byte limit (100000)");
    stopped("a=x\nwhile :; do a=\"$a$a\"; done\n", 2, "memory limit exceeded: variable byte limit (100000)");
    stopped(
        "while :; do echo 0123456789012345678901234567890123456789; done\n",
        1,
        "bytes of output: 100000",
    );
    stopped(
        "while :; do echo 0123456789012345678901234567890123456789 >&2; done\n",
        1,
        "bytes of output: 100000",
    );
    stopped(
        "while :; do\n tc class replace dev eth0 parent 1: classid 1:1 htb rate 1mbit\ndone\n",
        2,
        "commands given to the machine: 50",
    );
    stopped(
        "while :; do tc qdisc show dev eth0 > /dev/null 2>&1; done",
        1,
        "commands given to the machine: 50",
    );
    stopped("awk 'BEGIN { while (1) x++ }'\necho on\n", 2, "awk: ");
    stopped("seq 20000000 2> /dev/null | tail -1\n", 1, "seq: line limit (10000000) exceeded");
}

#[test]
fn what_stands_within_itself_is_stopped() {
    stopped("a='eval \"$a\"'; eval \"$a\"; echo on\n", 1, "eval within eval: 100");
    let shells = "functions, sourced files and shells within each other: 16";
    stopped("f() {\n f\n}\nf\necho on\n", 2, shells);
    stopped(". \"$0\"\n", 1, shells);
    stopped("f() { echo \"$(f)\"; }; f\n", 1, shells);
    stopped(
        "\"$0\"\n",
        1,
        "scripts that call themselves, and whatever else stands within each other: 128 MiB",
    );
    stopped("x=$(\"$0\")\n", 1, "");
    stopped("bash \"$0\"\n", 1, "shells within each other: 8");
    stopped("bash \"$0\" > /dev/null 2>&1; echo on\n", 1, "shells within each other: 8");
    stopped("trap 'eval \"kill -USR1 $$\"' USR1; kill -USR1 $$; . \"$0\"\n", 1, "");
    let nested =
        |open: &str, inner: &str, close: &str, n| format!("{}{inner}{}\n", open.repeat(n), close.repeat(n));
    stopped(&nested("echo $(", "echo x", ")", 60), 1, "$( ) within each other: 32");
    stopped(&nested("if :; then\n", "echo x\n", "fi\n", 200), 1, "constructs within each other: 100");
    stopped(&nested("{ ", "echo x;", " };", 5000), 1, "constructs within each other: 100");
    stopped(
        &format!("echo {}\n", nested("${x:-", "y", "}", 5000).trim_end()),
        1,
        "${ } within each other: 100",
    );
    stopped(&format!("echo $((1{}))\n", "+1".repeat(20_000)), 1, "operators and parentheses of one");
    stopped(&format!("echo {}\n", nested("{a,", "b", "}", 200).trim_end()), 1, "braces of one word");
    stopped("echo a{1..20000}b\n", 1, "braces of one word");
}

/// The script goes on with less than it asked for, and of files may have hidden what it was told: we tell it.
#[test]
fn what_is_refused_is_told_wherever_it_is_said() {
    let limits = Limits { files: 200_000, ..small() };
    let told = |text: &str, limit: &str| {
        let (status, _) = done(&limits, text);
        let want = format!("stopped at a limit of the virtual machine: {limit}");
        assert!(status.as_ref().is_err_and(|why| why.contains(&want)), "{text}: {status:?}, not {want}");
    };
    let full = "a=0123456789; for i in 1 2 3 4 5 6 7 8 9 10; do a=\"$a$a\"; done\n";
    let files = "bytes of all files: 200000";
    told(&format!("{full}for i in {{1..30}}; do echo \"$a\" > f$i; done 2> /dev/null; rm f*\n"), files);
    told(&format!("{full}for i in {{1..30}}; do echo \"$a\" >> f; done 2>&1 | tail -1\n"), files);
    told(&format!("{full}for i in {{1..30}}; do echo \"$a\"; done > f\n"), files);
    told(&format!("{full}for i in {{1..30}}; do cat << E >> f\n$a\nE\ndone 2> /dev/null\n"), files);
    told(&format!("{full}for i in {{1..30}}; do echo \"$a\"; done | tee f > /dev/null 2>&1\n"), files);
    let jobs = "jobs in the background: 1000";
    told("for i in {1..1010}; do sleep 9 & done\n", jobs);
    told(&format!("echo x{}\n", " | cat".repeat(1010)), jobs);
    let limits = Limits { files: 256 << 20, ..Limits::default() };
    let (status, _) = done(&limits, "dd if=/dev/zero of=x bs=1M count=65\n");
    assert!(status.as_ref().is_err_and(|why| why.contains("bytes that dd moves: 67108864")), "{status:?}");
}

#[test]
fn a_limit_is_not_met_by_what_has_ended() {
    let text = "for i in {1..300}; do eval \"x=$i\"; done; echo $x\n\
                for i in {1..30}; do bash -c ':'; done; echo shells\n\
                for i in {1..30}; do timeout 1 bash -c 'eval sleep 5'; done; echo timeouts\n\
                f() { eval 'eval \"eval g $1\"'; }; g() { echo $1; }; for i in {1..50}; do f $i; done | tail -1\n";
    let (status, kept) = done(&Limits::default(), text);
    assert_eq!(
        (status, kept.stdout.as_str(), kept.stderr.as_str()),
        (Ok(0), "300\nshells\ntimeouts\n50\n", "")
    );
}

#[test]
fn long_ranges_and_sequences_are_whole() {
    let text = "n=0; for i in {1..25001}; do n=$((n + 1)); done; echo $n $i\n\
                for i in {020000..1..7}; do :; done; echo $i\n\
                seq 150000 | tail -1; seq 150000 | wc -l; seq 5 -2 0 | tr '\\n' ' '; seq 5 1 | wc -l\n\
                uniq -f 99999999999999 <<< x; uniq -s 99999999999999 <<< y; uniq -w 99999999999999 <<< z\n\
                head -c 3000000 /dev/zero | wc -c; head -c 2M /dev/urandom | wc -c\n";
    let (status, kept) = done(&Limits::default(), text);
    let want = "25001 25001\n000001\n150000\n150000\n5 3 1 0\nx\ny\nz\n3000000\n2097152\n";
    assert_eq!((status, kept.stdout.as_str(), kept.stderr.as_str()), (Ok(0), want, ""));
    let (status, _) = done(&Limits::default(), "cat /dev/urandom | head -c 5M | wc -c\n");
    assert!(status.unwrap_err().contains("bytes of a device read at once: 1048576"));
}

#[test]
fn long_scripts_are_run_whole() {
    // A comment that made the script longer than the interpreter's disk was once a script that did nothing.
    let text = format!("echo begin\n# {}\necho end\nfalse\n", "x".repeat(10_000_000));
    let (status, kept) = done(&Limits::default(), &text);
    assert_eq!((status, kept.stdout.as_str()), (Ok(1), "begin\nend\n"));

    let lines: String = (0..40_000).map(|n| format!("x{}=$((x{} + {n}))\n", n % 10, n % 10)).collect();
    let (status, kept) = done(&Limits::default(), &format!("{lines}echo $x1 end\n"));
    assert_eq!((status, kept.stdout.as_str()), (Ok(0), "79984000 end\n"));

    let (status, kept) =
        done(&Limits::default(), &"tc qdisc replace dev eth0 root pfifo limit 7\n".repeat(10_000));
    assert_eq!((status, kept.commands.len(), kept.commands.last().unwrap().line), (Ok(0), 10_000, 10_000));
}

#[test]
fn what_cannot_be_run_is_an_error() {
    let limits = Limits { text: 1000, ..Limits::default() };
    let (status, _) = done(&limits, &"#".repeat(2000));
    assert!(status.unwrap_err().contains("the script and its files: 1000 bytes, and these are 2000"));
    let mut host = Host::new("penstock", Kernel::V6_12, 1);
    let script =
        Script { text: "while false; do :; done\n".to_owned(), name: "x".repeat(400), ..Script::default() };
    let mut kept = Kept::default();
    let status = penstock_shell::run(&script, &mut At { host: &mut host, now: Time::ZERO }, &mut kept);
    assert!(status.unwrap_err().contains("its name cannot be held"), "{}", kept.stderr);
}

#[test]
fn the_brake_ends_what_no_count_bounds() {
    let limits = Limits { quiet: Duration::from_millis(300), ..Limits::default() };
    let (status, _) = done(&limits, "while :; do :; done\n");
    let why = status.unwrap_err();
    assert!(why.contains("time without a word, by this computer's clock: 0.3 s"), "{why}");
}
