//! Scripts of our own, run as they stand; and what is told where one is wrong.

use penstock_model::Kernel;
use penstock_packetdrill::{Options, Report, parse, run};
use std::path::Path;

fn outcome(text: &str) -> Report {
    outcome_on(Kernel::V6_12, text)
}
fn outcome_on(kernel: Kernel, text: &str) -> Report {
    let script = parse(text, &[]).unwrap_or_else(|f| panic!("line {}: {}", f.line, f.message));
    run(&script, &Options { kernel, ..Options::default() })
}

#[test]
fn our_scripts_pass_each_time_alike() {
    for (folder, kernel, least) in [("scripts", Kernel::V6_12, 12), ("scripts-7.2", Kernel::V7_2, 5)] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        assert!(paths.len() >= least);
        for path in paths {
            let text = std::fs::read_to_string(&path).unwrap();
            let report = outcome_on(kernel, &text);
            if let Some(f) = &report.failure {
                panic!("{}:{}: {}", path.display(), f.line, f.message);
            }
            assert_eq!(report, outcome_on(kernel, &text), "{}", path.display());
        }
    }
}

#[test]
fn accurate_ecn_is_of_the_newest_kernel() {
    let text = "`sysctl -qw net.ipv4.tcp_ecn=3`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3";
    assert_eq!(outcome_on(Kernel::V7_2, text).failure, None);
    let message = outcome(text).failure.unwrap().message;
    assert!(message.contains("setting key \"net.ipv4.tcp_ecn\": Invalid argument"), "{message}");
}

/// A connection that is open, and then what is to be looked at, from line 8 on.
fn open(rest: &str) -> String {
    let begin = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,nop,nop,sackOK>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
";
    format!("{begin}{rest}\n")
}

#[test]
fn what_differs_is_told() {
    for (rest, line, message) in [
        ("+0 write(4, ..., 1000) = 900", 8, "write: Expected result 900 but got 1000"),
        (
            "+0 read(7, ..., 1000) = 0",
            8,
            "read: Expected result 0 but got -1 with errno 9 (Bad file descriptor)",
        ),
        (
            "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:901(900) ack 1",
            9,
            "live packet payload: expected 900 bytes vs actual 1000 bytes",
        ),
        (
            "+0 write(4, ..., 1000) = 1000\n+0 > . 1:1001(1000) ack 1",
            9,
            "tcp_psh: expected: 0 (0x0) vs actual: 1 (0x1)",
        ),
        (
            "+0 write(4, ..., 1000) = 1000\n+.1 > P. 1:1001(1000) ack 1",
            9,
            "timing error: expected outbound packet at 0.2000",
        ),
        ("+0 > . 1:1(0) ack 1", 8, "Timed out waiting for packet"),
        ("+0 %{ assert tcpi_snd_cwnd == 9, tcpi_snd_cwnd }%", 8, "AssertionError: 10"),
        (
            "+0 `tc qdisc add dev tun9 root pfifo`",
            8,
            "error executing command: status 1: Cannot find device \"tun9\"",
        ),
        ("+0 read(4, ..., 10) = 10", 8, "read waits, and nothing comes that would end it"),
        (
            "+0...0.5 read(4, ..., 10) = 10\n+.1 < P. 1:11(10) ack 1 win 32792",
            8,
            "timing error: expected system call return at 0.6",
        ),
        ("+0 setsockopt(4, SOL_TCP, TCP_MD5SIG, [1], 4) = 0", 8, "TCP_MD5SIG of SOL_TCP is not run here"),
        (
            "+0 getsockopt(4, SOL_TCP, TCP_MAXSEG, [999], [4]) = 0",
            8,
            "Bad getsockopt value: expected: 999 actual: 1000",
        ),
        ("+0 < . 1:1(0) ack 1 win 0 <sack 1:2>\n+0 epoll_wait(5) = 0", 9, "epoll_wait is not run here"),
    ] {
        let report = outcome(&open(rest));
        let Some(f) = report.failure else { panic!("{rest}: it passes") };
        assert!(f.line == line && f.message.contains(message), "{rest}: line {}: {}", f.line, f.message);
    }
}

#[test]
fn a_kernel_of_2010_has_its_own_answers() {
    let text = open("+0 %{ assert tcpi_snd_cwnd == 4, tcpi_snd_cwnd }%");
    let script = parse(&text, &[]).unwrap();
    let options = Options { kernel: Kernel::V2_6_35, ..Options::default() };
    let report = run(&script, &options);
    assert_eq!(report.failure.map(|f| f.message), None);
}
