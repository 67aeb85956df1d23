use super::*;
use crate::netfilter::{Devices, Fate, Hook};
use crate::tests::{set4, skb, udp};
use penstock_lang::iptables::{Family, Table};
use penstock_lang::token::words;
use penstock_model::{Handle, Time};
use penstock_packet::headers::ipproto;
use penstock_packet::{L4, Skb, Tcp, TcpFlags};

pub(in crate::netfilter) fn run(nf: &mut Netfilter, line: &str) -> Result<String, Failure> {
    nf.execute(&ipt::parse(&words(line).unwrap(), Kernel::V6_12)?)
}
pub(in crate::netfilter) fn table(lines: &[&str]) -> Netfilter {
    let mut nf = Netfilter::default();
    for line in lines {
        run(&mut nf, line).unwrap_or_else(|f| panic!("{line}: {}", f.stderr));
    }
    nf
}
pub(super) fn tcp(dport: u16) -> Skb {
    let l4 = L4::Tcp(Tcp { sport: 40_000, dport, flags: TcpFlags::ACK, window: 5000, ..Tcp::default() });
    skb("10.3.34.11", "10.3.31.88", ipproto::TCP, l4, 1500)
}
pub(super) fn through(nf: &mut Netfilter, hook: Hook, skb: &mut Skb, input: &str, output: &str) -> Fate {
    nf.run(hook, skb, Devices { input, output, fib: None, fib6: None, ports: None }, Time::ZERO)
}

const LAB: &[&str] = &[
    "iptables -t mangle -N INSHAPER",
    "iptables -t mangle -I PREROUTING -i eth1 -j INSHAPER",
    "iptables -t mangle -A INSHAPER -p tcp --dport 5001 -j MARK --set-mark 10",
    "iptables -t mangle -A INSHAPER -p tcp --dport 5002 -j MARK --set-mark 20",
    "iptables -t mangle -A INSHAPER -m mark --mark 0 -j MARK --set-mark 30",
];

#[test]
fn the_virtual_lab_marks_by_port() {
    let mut nf = table(LAB);
    for (dport, mark) in [(5001, 10), (5002, 20), (5003, 30)] {
        let mut p = tcp(dport);
        assert_eq!(through(&mut nf, Hook::Prerouting, &mut p, "eth1", ""), Fate::Accept);
        assert_eq!(p.mark, mark);
    }
    let mut other = tcp(5001);
    through(&mut nf, Hook::Prerouting, &mut other, "eth0", "");
    assert_eq!(other.mark, 0);
    let saved = run(&mut nf, "iptables -t mangle -S").unwrap();
    assert_eq!(
        saved,
        "-P PREROUTING ACCEPT\n-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n-P POSTROUTING ACCEPT\n-N INSHAPER\n-A PREROUTING -i eth1 -j INSHAPER\n\
         -A INSHAPER -p tcp -m tcp --dport 5001 -j MARK --set-xmark 0xa/0xffffffff\n-A INSHAPER -p tcp -m tcp --dport 5002 -j MARK --set-xmark 0x14/0xffffffff\n\
         -A INSHAPER -m mark --mark 0x0 -j MARK --set-xmark 0x1e/0xffffffff\n"
    );
    let listed = run(&mut nf, "iptables -t mangle -L PREROUTING -n -v -x").unwrap();
    assert!(listed.contains("Chain PREROUTING (policy ACCEPT 4 packets, 6000 bytes)"), "{listed}");
    assert!(listed.contains("\n       3     4500 INSHAPER   0    --  eth1   *  "), "{listed}");
}

#[test]
fn return_goto_and_the_end_of_chains() {
    let mut nf = table(&[
        "iptables -t mangle -N A",
        "iptables -t mangle -N B",
        "iptables -t mangle -A FORWARD -j A",
        "iptables -t mangle -A FORWARD -j MARK --or-mark 0x100",
        "iptables -t mangle -A A -j MARK --or-mark 1",
        "iptables -t mangle -A A -p udp -j RETURN",
        "iptables -t mangle -A A -g B",
        "iptables -t mangle -A A -j MARK --or-mark 2",
        "iptables -t mangle -A B -j MARK --or-mark 4",
    ]);
    // Goto does not come back to A, but to who jumped to A.
    let mut p = tcp(80);
    through(&mut nf, Hook::Forward, &mut p, "eth0", "eth1");
    assert_eq!(p.mark, 0x105);
    let mut p = udp("10.0.0.1", "10.0.0.2", 100);
    through(&mut nf, Hook::Forward, &mut p, "eth0", "eth1");
    assert_eq!(p.mark, 0x101);
}

#[test]
fn targets_and_filter() {
    let mut nf = table(&[
        "iptables -t mangle -A POSTROUTING -o eth0 -j CLASSIFY --set-class 1:10",
        "iptables -t mangle -A POSTROUTING -j DSCP --set-dscp 46",
        "iptables -t mangle -A FORWARD -m dscp ! --dscp 0 -j TOS --set-tos 0x10/0x1e",
        "iptables -A FORWARD -p udp -m length --length 0:99 -j DROP",
        "iptables -P FORWARD DROP",
        "iptables -A FORWARD -m multiport -p tcp --dports 80,443 -j ACCEPT",
        "iptables -A FORWARD -i eth+ ! -o eth1 -j ACCEPT",
    ]);
    let mut p = tcp(80);
    set4(&mut p, |h| h.tos = 1);
    assert_eq!(through(&mut nf, Hook::Postrouting, &mut p, "", "eth0"), Fate::Accept);
    assert_eq!((p.priority, p.tos()), (Handle::new(1, 0x10).0, 46 << 2 | 1));
    assert_eq!(through(&mut nf, Hook::Forward, &mut p, "eth0", "eth1"), Fate::Accept);
    assert_eq!(p.tos(), 0xb8 & !0x1e ^ 0x10 | 1);
    let mut p = udp("10.0.0.1", "10.0.0.2", 99);
    assert_eq!(through(&mut nf, Hook::Forward, &mut p, "eth0", "eth2"), Fate::Drop);
    let mut p = udp("10.0.0.1", "10.0.0.2", 100);
    assert_eq!(through(&mut nf, Hook::Forward, &mut p, "eth0", "eth2"), Fate::Accept);
    assert_eq!(through(&mut nf, Hook::Forward, &mut p, "eth0", "eth1"), Fate::Drop);
}

#[test]
fn refusals_change_nothing() {
    let mut nf = table(LAB);
    let before = nf.clone();
    let mut check = |line: &str, want: &str, exit: i32| {
        let f = run(&mut nf, line).expect_err(line);
        assert_eq!((f.message(), f.exit), (want, exit), "{line}");
        assert_eq!(nf, before, "{line}");
    };
    check("iptables -t mangle -N INSHAPER", "iptables: Chain already exists.", 1);
    check("iptables -t mangle -A NONE -j ACCEPT", "iptables: No chain/target/match by that name.", 1);
    check("iptables -t mangle -X INSHAPER", "iptables: Too many links.", 1);
    let invalid = "iptables: Invalid argument. Run `dmesg' for more information.";
    check("iptables -t mangle -X INPUT", invalid, 1);
    check("iptables -t mangle -F NONE", "iptables: No chain/target/match by that name.", 1);
    check("iptables -t mangle -I INSHAPER 9 -j ACCEPT", "iptables: Index of insertion too big.", 1);
    check("iptables -t mangle -D INSHAPER 9", "iptables: Index of deletion too big.", 1);
    check("iptables -t mangle -R INSHAPER 9 -j ACCEPT", "iptables: Index of replacement too big.", 1);
    check(
        "iptables -t mangle -D INSHAPER -j ACCEPT",
        "iptables: Bad rule (does a matching rule exist in that chain?).",
        1,
    );
    check("iptables -t mangle -P INSHAPER DROP", "iptables: Bad built-in chain name.", 1);
    check(
        "iptables -t mangle -P INPUT MAYBE",
        "iptables: Bad policy name. Run `dmesg' for more information.",
        1,
    );
    check("iptables -t mangle -A INSHAPER -j INSHAPER", "iptables: Too many levels of symbolic links.", 1);
    check("iptables -t mangle -E INSHAPER INPUT", "iptables: File exists.", 1);
    let missing = "iptables v1.8.9 (legacy): Couldn't load target `NONE':No such file or directory";
    check("iptables -t mangle -A INPUT -j NONE", missing, 2);
    let invalid = "iptables: Invalid argument. Run `dmesg' for more information.";
    check("iptables -A INPUT -j DSCP --set-dscp 1", invalid, 1);
    check("iptables -t mangle -A INSHAPER -j CLASSIFY --set-class 1:1", invalid, 1);
}

#[test]
fn chains_come_and_go() {
    let mut nf = table(LAB);
    for line in [
        "iptables -t mangle -E INSHAPER SHAPER",
        "iptables -t mangle -Z",
        "iptables -t mangle -D PREROUTING -i eth1 -j SHAPER",
        "iptables -t mangle -F",
        "iptables -t mangle -X",
    ] {
        run(&mut nf, line).unwrap_or_else(|f| panic!("{line}: {}", f.stderr));
    }
    assert_eq!(nf.table(Family::Ip, Table::Mangle).chains().len(), 5);
}

#[test]
fn limits_let_a_burst_through_then_the_rate() {
    let mut nf = table(&["iptables -A INPUT -m limit --limit 10/second --limit-burst 3 -j DROP"]);
    let mut hits = |ms: i64| {
        let mut p = tcp(1);
        let devices = Devices { input: "eth0", output: "", fib: None, fib6: None, ports: None };
        nf.run(Hook::Input, &mut p, devices, Time::from_ns(ms * 1_000_000)) == Fate::Drop
    };
    let got: Vec<bool> = [0, 0, 0, 0, 50, 100, 101, 200].into_iter().map(&mut hits).collect();
    assert_eq!(got, [true, true, true, false, false, true, false, true]);
}
