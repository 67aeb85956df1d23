//! A setup is a shell script, and so is what an app runs: whichever door a line comes in by, it means the same.

use penstock_lab::experiment;
use penstock_lab::run::{Options, Outcome, run};
use penstock_model::Diagnostic;

/// A machine with this setup, and an app that runs these lines at its start.
fn try_lines(setup: &str, app: &str) -> Result<Outcome, Vec<Diagnostic>> {
    let text = format!(
        "duration = \"2s\"\n[host.r]\neth0 = \"10.0.0.1/24\"\nsetup = '''\n{setup}\n'''\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
         [[link]]\nends = [\"r:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\n[[app]]\non = \"r\"\nrun = '''{app}'''\n"
    );
    let parsed = experiment::parse(&text, "door.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
}

/// What the app printed behind that setup.
#[track_caller]
fn printed(setup: &str, app: &str) -> String {
    match try_lines(setup, app) {
        Ok(mut outcome) => outcome.outputs.remove(0),
        Err(faults) => panic!("{setup}: {}", faults[0]),
    }
}

/// The place and the words of the refusals.
#[track_caller]
fn refused(setup: &str) -> Vec<String> {
    match try_lines(setup, "true") {
        Ok(_) => panic!("{setup}: it ran"),
        Err(faults) => {
            faults.iter().map(|d| format!("{}:{}+{} {}", d.line, d.column, d.len, d.message)).collect()
        }
    }
}

const FORWARDS: &str = "cat /proc/sys/net/ipv4/ip_forward";
const TTL: &str = "cat /proc/sys/net/ipv4/ip_default_ttl";
const ROOT: &str = "tc qdisc show dev eth0 root | cut -d' ' -f2";

/// What a job of a setup waits counts from when it began to: the setups behind it take their time.
#[test]
fn jobs_of_setups_keep_their_time() {
    let text = r#"
duration = "400ms"
[host.a]
eth0 = "10.0.0.1/24"
setup = "(sleep 0.3; tc qdisc add dev eth0 root pfifo limit 7) & (sleep 0.05; tc qdisc add dev eth0 ingress) & sleep 0.02"
[host.b]
eth0 = "10.0.0.2/24"
setup = "(sleep 0.3; tc qdisc add dev eth0 root pfifo limit 7) & sleep 0.2"
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "1mbit"
[[app]]
on  = "a"
run = "tc qdisc show dev eth0"
at  = "1ms"
[[app]]
on  = "a"
run = "tc qdisc show dev eth0"
at  = "79ms"
[[app]]
on  = "a"
run = "tc qdisc show dev eth0"
at  = "81ms"
[[app]]
on  = "b"
run = "tc qdisc show dev eth0"
at  = "99ms"
[[app]]
on  = "b"
run = "tc qdisc show dev eth0"
at  = "101ms"
"#;
    let experiment = experiment::parse(text, "jobs.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let outcome = run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let outputs = outcome.unwrap_or_else(|d| panic!("{}", d[0])).outputs;
    let has = |what: &str| outputs.iter().map(|o| o.contains(what)).collect::<Vec<_>>();
    assert_eq!(has("qdisc pfifo 8001: root"), [false, false, true, false, true], "{outputs:?}");
    // Due while the other setup slept: done at the run's start.
    assert_eq!(has("ingress"), [true, true, true, false, false], "{outputs:?}");
}

#[test]
fn lines_of_a_setup() {
    for (setup, app, want) in [
        ("echo 1 > /proc/sys/net/ipv4/ip_forward", FORWARDS, "1\n"),
        ("if true; then echo 1 > /proc/sys/net/ipv4/ip_forward; fi", FORWARDS, "1\n"),
        ("echo 1 | tee /proc/sys/net/ipv4/ip_forward", FORWARDS, "1\n"),
        ("sudo sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'", FORWARDS, "1\n"),
        ("sysctl -w net.ipv4.ip_forward=1", FORWARDS, "1\n"),
        (
            "sysctl net.ipv4.ip_forward = 1 >/dev/null 2>&1; sysctl -q -w net/ipv4/ip_forward=1",
            FORWARDS,
            "1\n",
        ),
        ("set -e\nsysctl -qw net.ipv4.ip_default_ttl=9\nexit 0\nnonsense", TTL, "9\n"),
        ("set -euo pipefail", "true", ""),
        ("sleep 1; echo 7 > /proc/sys/net/ipv4/ip_default_ttl", TTL, "7\n"),
        ("tc qdisc del dev eth0 root 2>/dev/null", ROOT, "pfifo_fast\n"),
        ("tc qdisc del dev eth0 root &>/dev/null || true\ntc qdisc add dev eth0 root sfq", ROOT, "sfq\n"),
        (
            "tc qdisc del dev eth0 root 2>/dev/null || tc qdisc add dev eth0 root red limit 60KB avpkt 1000 2>&1 | cat",
            ROOT,
            "red\n",
        ),
        ("false\ntrue && false", "true", ""),
        ("Q=htb\nshape() { tc qdisc add dev $1 root $Q; }", "true", ""),
        ("shape() {\n  tc qdisc add dev \"$1\" root \"$2\"\n}\nshape eth0 prio", ROOT, "prio\n"),
        ("for q in sfq pfifo; do tc qdisc replace dev eth0 root $q; done", ROOT, "pfifo\n"),
        ("tc -b - <<E\nqdisc add dev eth0 root bfifo limit 5000\nE", ROOT, "bfifo\n"),
        ("trap 'tc qdisc add dev eth0 root sfq' EXIT\nexit 0", ROOT, "sfq\n"),
        (
            "echo 'qdisc add dev eth0 root tbf rate 1mbit burst 5k latency 50ms' > /run/b; tc -batch /run/b",
            ROOT,
            "tbf\n",
        ),
        ("echo 'D=eth0' > /run/conf; . /run/conf; tc qdisc add dev $D root sfq", ROOT, "sfq\n"),
        (
            "n=$(tc qdisc show dev eth0 | wc -l)\n[ \"$n\" = 1 ] && tc qdisc add dev eth0 root drr",
            ROOT,
            "drr\n",
        ),
        ("echo \"a\nb\" >/dev/null; tc qdisc add \\\n  dev eth0 \\\n  root sfq", ROOT, "sfq\n"),
    ] {
        assert_eq!(printed(setup, app), want, "{setup}");
    }
}

#[test]
fn lines_of_an_app() {
    for (app, want) in [
        ("echo 9 > /proc/sys/net/ipv4/ip_default_ttl; cat /proc/sys/net/ipv4/ip_default_ttl", "9\n"),
        ("set -e; false; echo no", ""),
        ("nft list ruleset", ""),
        ("ip6tables -S", "-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n"),
        ("ethtool -k eth0 | head -1", "Features for eth0:\n"),
        ("uname -n", "r\n"),
        ("x=1; sleep 0.5; echo $x; for i in 1 2; do echo $i; done", "1\n1\n2\n"),
    ] {
        assert_eq!(printed("", app), want, "{app}");
    }
}

#[test]
fn an_app_takes_its_time() {
    let app = "sleep 0.25; tc qdisc add dev eth0 root sfq; sleep .5; exit 3";
    let outcome = try_lines("", app).unwrap_or_else(|d| panic!("{}", d[0]));
    let run = &outcome.record.apps[0];
    assert_eq!((run.start_s, run.end_s, run.exit), (Some(0.0), Some(0.75), Some(3)));
    // What runs on when the run is over has no end.
    let app = "while sleep 0.75; do tc qdisc show dev eth0 | wc -l; done";
    let outcome = try_lines("", app).unwrap_or_else(|d| panic!("{}", d[0]));
    assert_eq!((outcome.outputs[0].as_str(), outcome.record.apps[0].exit), ("1\n1\n", None));
    let outcome = try_lines("", "sleep 30").unwrap_or_else(|d| panic!("{}", d[0]));
    assert_eq!((outcome.record.apps[0].end_s, outcome.record.apps[0].exit), (None, None));
}

#[test]
fn a_setup_s_jobs_go_on_in_the_run() {
    let setup = "(sleep 0.5; tc qdisc replace dev eth0 root sfq) &\ntc qdisc add dev eth0 root pfifo";
    assert_eq!(
        printed(setup, &format!("{ROOT}; sleep 0.4; {ROOT}; sleep 0.2; {ROOT}")),
        "pfifo\npfifo\nsfq\n"
    );
    // The setup's own pauses are before the run.
    let setup = "(sleep 3; tc qdisc replace dev eth0 root sfq) &\nsleep 2";
    assert_eq!(printed(setup, &format!("sleep 0.9; {ROOT}; sleep 0.2; {ROOT}")), "pfifo_fast\nsfq\n");
    // One that is over before the setup ends is over.
    let setup = "(sleep 1; tc qdisc replace dev eth0 root sfq) &\nwait";
    assert_eq!(printed(setup, ROOT), "sfq\n");
}

#[test]
fn texts_of_a_setup_are_one_script() {
    let text = r#"duration = "1s"
[host.r]
eth0 = "10.0.0.1/24"
setup = ["set -e", "D=eth0", "for q in pfifo sfq; do", "  tc qdisc replace dev $D root $q", "done", "tc qdisc add dev $D root sfq"]
"#;
    let parsed = experiment::parse(text, "door.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let refused = run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .err()
        .expect("an sfq stands there");
    let said: Vec<_> = refused.iter().map(ToString::to_string).collect();
    assert!(
        said[0].starts_with("door.toml:4:102: r: Error: Exclusivity flag on, cannot modify."),
        "{said:?}"
    );
    assert_eq!(said.len(), 1);
}

#[test]
fn what_a_setup_says_of_a_failure() {
    for (setup, want) in [
        ("tc qdisc add dev eth0 root tbf rate 1mbit", "5:37+5 r: tbf: the \"burst\" parameter is mandatory."),
        ("cat /nope", "5:1+9 r: cat: /nope: No such file or directory"),
        ("true; exit 3", "5:1+12 r: the setup ended with status 3"),
        ("set -e\n\n  false\ntrue", "7:3+5 r: the setup ended with status 1"),
        ("true\ntc qdisc show\necho \"x\n", "7:1+7 r: the setup ended with status 2 (./setup: line 3: "),
        ("nonsense 5", "5:1+10 r: ./setup: line 1: nonsense: command not found"),
        (
            "tc qdisc add dev eth0 root \\\n   tbf rate 1foo",
            "6:13+4 r: tbf: illegal value for \"rate\": \"1foo\"",
        ),
        (
            "f() {\n tc qdisc add dev eth0 root nono\n}\nf",
            "6:2+31 r: Error: Specified qdisc kind is unknown.",
        ),
        (
            "true\n\nsudo tc qdisc del dev eth0 root",
            "7:1+31 r: Error: Cannot delete qdisc with handle of zero.",
        ),
    ] {
        let found = refused(setup);
        assert!(found.len() == 1 && found[0].starts_with(want), "{setup}: {found:?}");
    }
    // Each line that fails is told.
    let found = refused("tc qdisc del dev eth0 root\ncat /nope\ntc qdisc add dev eth1 root sfq\nfalse");
    assert_eq!(found.len(), 3, "{found:?}");
}
