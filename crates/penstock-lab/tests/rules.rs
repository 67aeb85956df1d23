//! What rules of the packet filter let through of an experiment's traffic: so many of its packets.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};

/// What an app of `a` prints; `b` is 1 ms away and has this setup.
#[track_caller]
fn script(b: &str, text: &str) -> String {
    let text = format!(
        "duration = \"30s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\nsetup = [\"{b}\"]\n\
         [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"1ms\"\n\
         [[app]]\non = \"b\"\nrun = \"iperf -s\"\n[[app]]\non = \"a\"\nrun = '''\n{text}\n'''\nat = \"1s\"\n"
    );
    let parsed = experiment::parse(&text, "rules.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let outcome = run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    outcome.unwrap_or_else(|d| panic!("{}", d[0])).outputs[1].clone()
}

/// How many of ten echoes in 1.8 s are answered.
#[track_caller]
fn answered(b: &str) -> String {
    let said = script(
        b,
        "ping -c 1 10.0.0.2 > /dev/null; sleep 3; ping -i 0.2 -c 10 10.0.0.2 > log; grep -c 'bytes from' log",
    );
    said.trim().to_owned()
}

#[test]
fn echoes_by_rate_volume_and_time() {
    let drop = |asks: &str| answered(&format!("iptables -A INPUT -p icmp -m {asks} -j DROP"));
    // Three at once, and one more a second.
    assert_eq!(
        drop("hashlimit --hashlimit-above 1/s --hashlimit-burst 3 --hashlimit-mode srcip --hashlimit-name p"),
        "4"
    );
    // Seven packets of 84 bytes, one of which was before.
    assert_eq!(drop("quota ! --quota 600"), "6");
    assert_eq!(drop("statistic --mode nth --every 2 --packet 0"), "5");
    // The echoes begin at four seconds and some milliseconds.
    assert_eq!(drop("time --timestart 00:00:05 --timestop 00:01:00"), "5");
}

#[test]
fn connections_of_one_machine() {
    let said = script(
        "iptables -A INPUT -p tcp --syn -m connlimit --connlimit-above 2 -j REJECT --reject-with tcp-reset",
        "for i in 1 2 3; do iperf -c 10.0.0.2 -t 2 > log$i 2>&1 & done\nwait\ngrep -c 'bits/sec' log1 log2 log3\nsleep 1\n\
         iperf -c 10.0.0.2 -t 1 > log4 2>&1; grep -c 'bits/sec' log4",
    );
    assert_eq!(said, "log1:1\nlog2:1\nlog3:0\n1\n", "two run, the third is refused, and one later runs");
}

#[test]
fn packets_of_programs() {
    let said = script(
        "true",
        "iptables -A OUTPUT -m owner --uid-owner 0 -m tcp -p tcp --syn\niptables -A OUTPUT -m owner ! --uid-owner root -j DROP\n\
         iptables -A OUTPUT -p tcp --syn -m tcpmss --mss 1460\nping -c 2 10.0.0.2 > log; grep -c 'bytes from' log\n\
         iperf -c 10.0.0.2 -t 1 > log\niptables -S OUTPUT -v | grep -o 'owner.*\\|tcpmss.*'",
    );
    assert_eq!(
        said,
        "2\nowner --uid-owner 0 -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -c 1 60\nowner ! --uid-owner 0 -c 0 0 -j DROP\n\
         tcpmss --mss 1460 -c 1 60\n"
    );
}
