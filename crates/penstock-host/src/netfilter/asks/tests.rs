//! Against what Linux answered: `iptables -L INPUT -nvx` between the packets of real connections (6.1.176 with the same `nf_conncount.c`).

use super::super::change::tests::{run, table};
use super::super::{Devices, Fate, Hook, Netfilter};
use crate::tests::skb;
use penstock_lang::iptables::{Family, Table};
use penstock_model::Time;
use penstock_packet::headers::ipproto;
use penstock_packet::{Fragment, Ipv6, L3, L4, Skb, Tcp, TcpFlags, Udp};

const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;
const FIN: TcpFlags = TcpFlags::FIN;

/// A server with one card, by its clock.
pub(super) struct Server {
    pub nf: Netfilter,
    pub ms: i64,
}

impl Server {
    pub(super) fn new(lines: &[&str]) -> Server {
        Server { nf: table(lines), ms: 1000 }
    }
    pub(super) fn pass(&mut self, packet: &mut Skb, comes: bool) -> Fate {
        let (hooks, input, output) = match comes {
            true => ([Hook::Prerouting, Hook::Input], "eth0", ""),
            false => ([Hook::Output, Hook::Postrouting], "", "eth0"),
        };
        let devices = Devices { input, output, fib: None, fib6: None, ports: None };
        let now = Time::from_ns(self.ms * 1_000_000);
        let fate =
            hooks.into_iter().map(|h| self.nf.run(h, packet, devices, now)).find(|f| *f != Fate::Accept);
        if fate.is_some() {
            self.nf.let_go(packet);
        }
        fate.unwrap_or(Fate::Accept)
    }
    /// Packets of each rule of INPUT.
    pub(super) fn counts(&self) -> Vec<u64> {
        self.nf.table(Family::Ip, Table::Filter).chains()[0].rules.iter().map(|r| r.packets).collect()
    }
    /// A segment from a client's port, or to it.
    fn segment(
        &mut self,
        from: &str,
        port: u16,
        comes: bool,
        flags: TcpFlags,
        (seq, ack): (u32, u32),
        data: u32,
    ) -> Fate {
        let (sport, dport) = if comes { (port, 5000) } else { (5000, port) };
        let (src, dst) = if comes { (from, "10.0.0.1") } else { ("10.0.0.1", from) };
        let tcp = Tcp { sport, dport, flags, seq, ack, window: 60_000, ..Tcp::default() };
        self.pass(&mut skb(src, dst, ipproto::TCP, L4::Tcp(tcp), 40 + data), comes)
    }
    /// A handshake; whether it came to an end.
    fn open(&mut self, from: &str, port: u16) -> bool {
        let answered = self.segment(from, port, true, SYN, (100, 0), 0) == Fate::Accept
            && self.segment(from, port, false, SYN.with(ACK), (500, 101), 0) == Fate::Accept
            && self.segment(from, port, true, ACK, (101, 501), 0) == Fate::Accept;
        self.ms += 50;
        answered
    }
}

fn udp6(from: &str, sport: u16) -> Skb {
    let (src, dst) = (from.parse().unwrap(), "fd00::9".parse().unwrap());
    let l3 = Ipv6 {
        src,
        dst,
        traffic_class: 0,
        flow_label: 0,
        next_header: ipproto::UDP,
        hop_limit: 64,
        fragment: Fragment::NONE,
    };
    Skb::new(100, L3::Ipv6(l3), L4::Udp(Udp { sport, dport: 9 }))
}

const A: &str = "10.0.0.2";

#[test]
fn connections_of_an_address_are_counted() {
    let mut s = Server::new(&[
        "iptables -A INPUT -p tcp --dport 5000",
        "iptables -A INPUT -p tcp --dport 5000 -m connlimit --connlimit-above 2",
        "iptables -A INPUT -p tcp --dport 5000",
    ]);
    for (port, counts) in [(1, [2, 0, 2]), (2, [4, 0, 4]), (3, [6, 2, 6])] {
        assert!(s.open(A, port));
        assert_eq!(s.counts(), counts);
    }
    // One that is assured is counted no more, and asked all the same.
    for (port, counts) in [(1, [7, 3, 7]), (3, [8, 4, 8])] {
        s.segment(A, port, true, ACK, (101, 501), 1);
        s.segment(A, port, false, ACK, (501, 102), 0);
        s.ms += 50;
        assert_eq!(s.counts(), counts);
    }
    s.segment(A, 1, true, FIN.with(ACK), (102, 501), 0);
    s.segment(A, 1, false, ACK, (501, 103), 0);
    s.ms += 50;
    assert_eq!(s.counts(), [9, 5, 9]);
    s.segment(A, 1, false, TcpFlags::RST.with(ACK), (501, 103), 0);
    s.ms += 600;
    s.segment(A, 2, false, FIN.with(ACK), (501, 101), 0);
    s.segment(A, 2, true, ACK, (101, 502), 0);
    s.ms += 50;
    assert_eq!(s.counts(), [10, 5, 10]);
    s.segment(A, 2, true, FIN.with(ACK), (101, 502), 0);
    s.segment(A, 2, false, ACK, (502, 102), 0);
    s.ms += 300;
    assert_eq!(s.counts(), [11, 5, 11]);
    s.open(A, 4);
    assert_eq!(s.counts(), [13, 5, 13]);
    s.open("10.0.0.3", 4);
    assert_eq!(s.counts(), [15, 5, 15]);
}

#[test]
fn more_connections_than_that_are_refused() {
    let mut s = Server::new(&[
        "iptables -A INPUT -p tcp --dport 5000",
        "iptables -A INPUT -p tcp --syn --dport 5000 -m connlimit --connlimit-above 2 -j REJECT --reject-with tcp-reset",
        "iptables -A INPUT -p tcp --dport 5000",
    ]);
    let opened = [1, 2, 3, 4].map(|port| s.open(A, port));
    assert_eq!((opened, s.counts()), ([true, true, false, false], vec![6, 2, 4]));
    s.segment(A, 1, true, FIN.with(ACK), (101, 501), 0);
    s.segment(A, 1, false, FIN.with(ACK), (501, 102), 0);
    s.segment(A, 1, true, ACK, (102, 502), 0);
    s.ms += 100;
    assert_eq!(s.counts(), [8, 2, 6]);
    let opened = [5, 6].map(|port| s.open(A, port));
    assert_eq!((opened, s.counts()), ([true, false], vec![11, 3, 8]));
    // With a new table the count begins anew.
    run(&mut s.nf, "iptables -A INPUT -p icmp -j ACCEPT").unwrap();
    assert!(s.open(A, 7));
}

/// The last ACK of an address's last connection ends it, so that none is left, and it is dropped: as in Linux.
#[test]
fn an_address_without_connections_cannot_be_told() {
    let mut s = Server::new(&[
        "iptables -A INPUT -p tcp --dport 5000",
        "iptables -A INPUT -p tcp --dport 5000 -m connlimit --connlimit-upto 2",
        "iptables -A INPUT -p tcp --dport 5000",
        "iptables -A INPUT -p udp --dport 5000",
        "iptables -A INPUT -p udp --dport 5000 -m connlimit --connlimit-upto 3 --connlimit-mask 24",
    ]);
    s.open(A, 1);
    assert_eq!(s.counts(), [2, 2, 2, 0, 0]);
    s.segment(A, 1, true, FIN.with(ACK), (101, 501), 0);
    s.segment(A, 1, false, ACK, (501, 102), 0);
    s.ms += 50;
    assert_eq!(s.counts(), [3, 3, 3, 0, 0]);
    let fin = |s: &mut Server| {
        s.segment(A, 1, false, FIN.with(ACK), (501, 102), 0);
        let fate = s.segment(A, 1, true, ACK, (102, 502), 0);
        s.ms += 200;
        fate
    };
    assert_eq!((fin(&mut s), s.counts()), (Fate::Drop, vec![4, 3, 3, 0, 0]));
    assert_eq!((fin(&mut s), s.counts()), (Fate::Drop, vec![5, 3, 3, 0, 0]));
    assert_eq!((fin(&mut s), s.counts()), (Fate::Drop, vec![6, 3, 3, 0, 0]));
    s.open(A, 2);
    assert_eq!(s.counts(), [8, 5, 5, 0, 0]);
    assert_eq!((fin(&mut s), s.counts()), (Fate::Accept, vec![9, 6, 6, 0, 0]));
    for port in 10..15 {
        for _ in 0..2 {
            let udp = L4::Udp(Udp { sport: port, dport: 5000 });
            s.pass(&mut skb(A, "10.0.0.1", ipproto::UDP, udp, 29), true);
        }
        s.ms += 50;
    }
    assert_eq!(s.counts(), [9, 6, 6, 10, 6]);
}

#[test]
fn six_has_its_own_counts() {
    let mut nf = table(&["ip6tables -A INPUT -m connlimit --connlimit-above 1 --connlimit-mask 64 -j DROP"]);
    let devices = Devices { input: "eth0", output: "", fib: None, fib6: None, ports: None };
    let mut fates = Vec::new();
    for (from, sport) in [("fd00::1", 1), ("fd00::2", 2), ("fd00::1", 1), ("fd00:0:0:1::1", 3)] {
        let mut p = udp6(from, sport);
        let fate = [Hook::Prerouting, Hook::Input].map(|h| nf.run(h, &mut p, devices, Time::ZERO))[1];
        fates.push(fate);
    }
    // The one that was dropped counts until another is to be counted.
    assert_eq!(fates, [Fate::Accept, Fate::Drop, Fate::Drop, Fate::Accept]);
}

/// One that counts a hundred ticks a second, as the kernel that was asked.
fn hundred(lines: &[&str]) -> Server {
    let mut s = Server::new(lines);
    s.nf.tracking.set_hz(100);
    s
}

impl Server {
    /// So many datagrams at once, and 30 ms.
    fn send(&mut self, count: u32, src: &str, dst: &str, sport: u16, data: u32) -> Vec<u64> {
        for _ in 0..count {
            let udp = L4::Udp(Udp { sport, dport: 7000 });
            self.pass(&mut skb(src, dst, ipproto::UDP, udp, 28 + data), true);
        }
        self.ms += 30;
        self.counts()
    }
    fn proc(&self, name: &str) -> String {
        let now = Time::from_ns(self.ms * 1_000_000);
        self.nf.hashlimit_text(Family::Ip, name, now).expect("there is such a table")
    }
    fn replace(&mut self, lines: &[&str]) {
        for line in ["iptables -F INPUT"].iter().chain(lines) {
            run(&mut self.nf, line).unwrap_or_else(|f| panic!("{line}: {}", f.stderr));
        }
    }
}

const ME: &str = "10.0.0.1";
const B: &str = "10.0.0.3";

#[test]
fn each_sender_has_its_rate() {
    let mut s = hundred(&[
        "iptables -A INPUT -p udp -m hashlimit --hashlimit-upto 2/s --hashlimit-burst 5 --hashlimit-mode srcip --hashlimit-name a",
    ]);
    assert_eq!(s.send(20, A, ME, 1, 1), [5]);
    assert_eq!(s.send(3, B, ME, 1, 1), [8]);
    assert_eq!(
        s.proc("a"),
        "0 10.0.0.2:0->0.0.0.0:0 6597069766656 274877905000000 54975581000000\n\
         0 10.0.0.3:0->0.0.0.0:0 113249696883328 274877905000000 54975581000000\n"
    );
    s.ms += 1200;
    assert_eq!(s.send(5, A, ME, 1, 1), [13]);
    // A table stays while a rule names it; the first that made it says what it counts.
    run(&mut s.nf, "iptables -A INPUT -p icmp").unwrap();
    assert_eq!(s.send(3, A, ME, 1, 1), [13, 0]);
    run(&mut s.nf, "iptables -A INPUT -p udp -m hashlimit --hashlimit-above 100/s --hashlimit-burst 1 --hashlimit-mode dstip --hashlimit-name a").unwrap();
    s.ms += 500;
    assert_eq!(s.send(3, A, ME, 1, 1), [14, 0, 3]);
}

#[test]
fn bytes_have_rates_too() {
    let mut s = hundred(&[
        "iptables -A INPUT -p udp -m hashlimit --hashlimit-above 1kb/s --hashlimit-burst 4kb --hashlimit-mode srcip,dstport --hashlimit-name b",
    ]);
    assert_eq!(s.send(20, A, ME, 1, 472), [10]);
    assert!(s.proc("b").ends_with(" 0 51622202\n"), "{}", s.proc("b"));
    assert_eq!(s.send(20, A, ME, 1, 972), [30]);
    s.replace(&["iptables -A INPUT -p udp -m hashlimit --hashlimit-upto 1kb/s --hashlimit-mode srcip,dstport --hashlimit-name c"]);
    assert_eq!(s.send(10, A, ME, 1, 472), [2]);
    assert_eq!(
        s.proc("c"),
        format!(
            "14 10.0.0.2:0->0.0.0.0:7000 {} 0 51622202\n",
            3_355_443_200u64 - 64 * 51_622_202 + 3 * (1 << 25)
        )
    );
    assert_eq!(s.nf.hashlimit_names(Family::Ip), ["c"]);
}

#[test]
fn intervals_instead_of_credit() {
    let mut s = hundred(&[
        "iptables -A INPUT -p udp -m hashlimit --hashlimit-upto 10/s --hashlimit-burst 3 --hashlimit-mode srcip --hashlimit-name r \
         --hashlimit-rate-match --hashlimit-rate-interval 1",
    ]);
    assert_eq!(s.send(20, A, ME, 1, 1), [13]);
    assert_eq!(s.proc("r"), "0 10.0.0.2:0->0.0.0.0:0 1 20 10\n");
    s.ms += 1100;
    assert_eq!(s.send(20, A, ME, 1, 1), [26]);
    s.ms += 3000;
    assert_eq!(s.send(5, A, ME, 1, 1), [31]);
    assert_eq!(s.proc("r"), "0 10.0.0.2:0->0.0.0.0:0 1 5 10\n");
    s.replace(&["iptables -A INPUT -p udp -m hashlimit --hashlimit-upto 3kb/s --hashlimit-mode srcip --hashlimit-name rb --hashlimit-rate-match"]);
    assert_eq!(s.send(20, A, ME, 1, 472), [6]);
    assert_eq!(s.proc("rb"), "14 10.0.0.2:0->0.0.0.0:0 1 10000 3072\n");
}

#[test]
fn tables_fill_up_and_entries_expire() {
    let mut s = hundred(&[
        "iptables -A INPUT -p udp",
        "iptables -A INPUT -p udp -m hashlimit --hashlimit-upto 10/s --hashlimit-mode srcip,srcport --hashlimit-name m --hashlimit-htable-size 1 \
         --hashlimit-htable-max 1",
        "iptables -A INPUT -p udp",
    ]);
    for (port, counts) in [(4000, [1, 1, 1]), (4001, [2, 1, 1]), (4000, [3, 2, 2])] {
        assert_eq!(s.send(1, A, ME, port, 1), counts);
    }
    s.replace(&["iptables -A INPUT -p udp -m hashlimit --hashlimit-upto 1/min --hashlimit-burst 1 --hashlimit-mode srcip --hashlimit-name e \
                 --hashlimit-htable-expire 500 --hashlimit-htable-gcinterval 100"]);
    assert_eq!(s.send(2, A, ME, 1, 1), [1]);
    s.ms += 300;
    assert_eq!(s.send(1, A, ME, 1, 1), [1]);
    s.ms += 900;
    assert_eq!(s.proc("e"), "", "it is gone before anybody asks again");
    assert_eq!(s.send(1, A, ME, 1, 1), [2]);
    s.replace(&["iptables -A INPUT -p udp -m hashlimit --hashlimit-upto 5/s --hashlimit-mode srcip,dstip --hashlimit-srcmask 31 --hashlimit-name k"]);
    s.send(3, A, ME, 1, 1);
    s.send(3, B, ME, 1, 1);
    assert_eq!(s.send(3, A, "10.0.0.9", 1, 1), [8]);
    let shown = s.proc("k");
    assert!(
        shown.starts_with("0 10.0.0.2:0->10.0.0.1:0 ") && shown.contains("\n0 10.0.0.2:0->10.0.0.9:0 "),
        "{shown}"
    );
}

#[test]
fn rates_that_cannot_be() {
    let mut s = hundred(&[]);
    let mut said = |options: &str| {
        let line = format!("iptables -A INPUT -m hashlimit {options}");
        run(&mut s.nf, &line).map_or_else(|f| f.message().to_owned(), |_| "taken".to_owned())
    };
    let invalid = "iptables: Invalid argument. Run `dmesg' for more information.";
    assert_eq!(said("--hashlimit-upto 1/day --hashlimit-name z --hashlimit-htable-gcinterval 0"), invalid);
    assert_eq!(said("--hashlimit-upto 1/day --hashlimit-name z --hashlimit-htable-expire 0"), invalid);
    let range = "iptables: Numerical result out of range.";
    assert_eq!(said("--hashlimit-upto 1/day --hashlimit-name z --hashlimit-burst 1000000"), range);
    // Five times a day does not fit 64 bits: with a hundred ticks a second it is taken all the same, with 250 it is not.
    assert_eq!(said("--hashlimit-upto 1/day --hashlimit-name z --hashlimit-mode srcip"), range);
    assert_eq!(said("--hashlimit-upto 1/hour --hashlimit-name z --hashlimit-mode srcip"), "taken");
    for name in ["a/b", "..", "."] {
        assert_eq!(said(&format!("--hashlimit-upto 5/s --hashlimit-name {name}")), invalid);
    }
    assert_eq!(said("--hashlimit-upto 5/s --hashlimit-name z --hashlimit-rate-match"), invalid);
}

#[test]
fn a_quota_is_used_up() {
    let mut s = Server::new(&[
        "iptables -A INPUT -p udp -m quota --quota 300",
        "iptables -A INPUT -p udp -m quota ! --quota 300",
    ]);
    for (data, counts) in [(72, [1, 0]), (72, [2, 0]), (100, [2, 1]), (72, [2, 2]), (1, [2, 3])] {
        assert_eq!(s.send(1, A, ME, 1, data), counts);
    }
    // With the table's next change it is whole again.
    run(&mut s.nf, "iptables -A INPUT -p icmp").unwrap();
    assert_eq!(s.send(1, A, ME, 1, 72), [3, 3, 0]);
}

#[test]
fn the_time_of_day_and_of_the_year() {
    let asked = [
        "--timestart 09:00 --timestop 17:00",
        "--timestart 22:00 --timestop 06:00",
        "--timestart 22:00 --timestop 06:00 --contiguous --weekdays Thu",
        "--weekdays Sat,Sun",
        "! --weekdays Thu",
        "--monthdays 1,29,31",
        "--datestart 2026-03-01 --datestop 2028-02-29T12:00:00",
        "--timestart 22:00 --timestop 06:00 --weekdays Thu",
    ];
    let lines = asked.map(|words| format!("iptables -A INPUT -p udp -m time {words}"));
    let answers: [(i64, [u64; 8]); 12] = [
        (1_767_225_600, [0, 1, 0, 0, 0, 1, 0, 1]),
        (1_767_258_000, [1, 0, 0, 0, 0, 1, 0, 0]),
        (1_767_286_800, [1, 0, 0, 0, 0, 1, 0, 0]),
        (1_767_286_801, [0, 0, 0, 0, 0, 1, 0, 0]),
        (1_767_304_800, [0, 1, 1, 0, 0, 1, 0, 1]),
        (1_767_333_600, [0, 1, 1, 0, 1, 0, 0, 0]),
        (1_767_333_601, [0, 0, 0, 0, 1, 0, 0, 0]),
        (1_769_817_600, [0, 1, 0, 1, 1, 1, 0, 0]),
        (1_772_323_200, [0, 1, 0, 1, 1, 1, 1, 0]),
        (1_835_438_400, [1, 0, 0, 0, 1, 1, 1, 0]),
        (1_835_481_601, [0, 1, 0, 0, 1, 1, 0, 0]),
        (1_835_524_800, [1, 0, 0, 0, 1, 1, 0, 0]),
    ];
    for (second, fits) in answers {
        let mut s = Server::new(&lines.each_ref().map(String::as_str));
        s.ms = (second - penstock_model::EPOCH) * 1000 + 200;
        assert_eq!(s.send(1, A, ME, 1, 1), fits, "{second}");
    }
}

#[test]
fn limits_count_in_credits_and_ticks() {
    // 3333 ten thousandths cost 8532 credits, of which a tick brings 256: 33 are too few, 34 leave 172, with which 33 are enough.
    let mut s = hundred(&["iptables -A INPUT -p udp -m limit --limit 3/s --limit-burst 2"]);
    let mut got = Vec::new();
    for at in [1000, 1000, 1000, 1330, 1339, 1340, 1669, 1670] {
        s.ms = at;
        got.push(s.send(1, A, ME, 1, 1)[0]);
    }
    assert_eq!(got, [1, 2, 2, 2, 2, 3, 3, 4]);
}

#[test]
fn sizes_of_syns() {
    let mut s = Server::new(&[
        "iptables -A INPUT -p tcp -m tcpmss --mss 1000:1400",
        "iptables -A INPUT -p tcp -m tcpmss ! --mss 1000:1400",
        "iptables -A INPUT -p tcp -m tcpmss --mss 536",
    ]);
    for (mss, counts) in
        [(Some(1400), [1, 0, 0]), (Some(1401), [1, 1, 0]), (None, [1, 2, 0]), (Some(536), [1, 3, 1])]
    {
        let tcp = Tcp { sport: 1, dport: 2, flags: SYN, mss, ..Tcp::default() };
        s.pass(&mut skb(A, ME, ipproto::TCP, L4::Tcp(tcp), 44), true);
        assert_eq!(s.counts(), counts);
    }
}

/// `owner_mt`: without a socket, with one of the machine's own, with a program's.
#[test]
fn whose_packets_they_are() {
    let asked = [
        "--uid-owner 0",
        "! --uid-owner 0",
        "--uid-owner 1000-2000",
        "! --uid-owner 1000",
        "--gid-owner root",
        "--socket-exists",
        "! --socket-exists",
        "! --socket-exists ! --uid-owner 0",
    ];
    let lines = asked.map(|words| format!("iptables -A OUTPUT -m owner {words}"));
    let mut nf = table(&lines.each_ref().map(String::as_str));
    let mut fits = |packet: &Skb| {
        run(&mut nf, "iptables -Z OUTPUT").unwrap();
        let devices = Devices { input: "", output: "eth0", fib: None, fib6: None, ports: None };
        nf.run(Hook::Output, &mut packet.clone(), devices, Time::ZERO);
        let rules = &nf.table(Family::Ip, Table::Filter).chains()[2].rules;
        rules.iter().map(|r| r.packets).collect::<Vec<_>>()
    };
    let mut p = crate::tests::udp(ME, A, 100);
    assert_eq!(fits(&p), [0, 1, 0, 1, 0, 1, 0, 0], "the machine's own");
    p.sender.socket = 3;
    assert_eq!(fits(&p), [1, 0, 0, 1, 1, 1, 0, 0], "a program's");
    p.sender.socket = 0;
    p.iif = 2;
    assert_eq!(fits(&p), [0, 1, 0, 1, 0, 0, 1, 1], "another machine's");
}

#[test]
fn realms_of_the_route() {
    let mut nf = table(&[
        "iptables -A OUTPUT -m realm --realm 0x3000a",
        "iptables -A OUTPUT -m realm --realm 10",
        "iptables -A OUTPUT -m realm --realm 10/0xffff",
        "iptables -A OUTPUT -m realm ! --realm 10/0xffff",
        "iptables -A INPUT -m realm --realm 0",
    ]);
    let mut p = crate::tests::udp(ME, A, 100);
    p.set_realms(0x3_000a);
    for (hook, input, output) in [(Hook::Output, "", "eth0"), (Hook::Input, "eth0", "")] {
        let devices = Devices { input, output, fib: None, fib6: None, ports: None };
        nf.run(hook, &mut p.clone(), devices, Time::ZERO);
    }
    let of = |chain: usize| -> Vec<u64> {
        nf.table(Family::Ip, Table::Filter).chains()[chain].rules.iter().map(|r| r.packets).collect()
    };
    assert_eq!((of(2), of(0)), (vec![1, 0, 1, 0], vec![1]));
}
