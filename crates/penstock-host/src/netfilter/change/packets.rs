//! Rules on packets: connections, marks, addresses, dice, and nft's chains.

use super::tests::{run, table, tcp, through};
use super::*;
use crate::netfilter::{Devices, Fate, Hook};
use crate::route::Fib;
use crate::tests::{skb, udp};
use penstock_lang::nft::Options;
use penstock_model::{Handle, Time};
use penstock_packet::headers::ipproto;
use penstock_packet::{Icmp, IcmpBody, L3, L4, Skb, Tcp, TcpFlags};

fn reply(to: &Skb) -> Skb {
    let mut back = to.clone();
    if let L3::Ipv4(h) = &mut back.l3 {
        std::mem::swap(&mut h.src, &mut h.dst);
    }
    if let L4::Tcp(t) = &mut back.l4 {
        std::mem::swap(&mut t.sport, &mut t.dport);
    }
    back.mark = 0;
    back.reset_ct();
    back
}

fn nft(nf: &mut Netfilter, text: &str) {
    let devices = ["lo", "eth0", "eth1"].map(str::to_owned);
    nf.run_nft(text, None, &Options::default(), &devices, Time::ZERO)
        .unwrap_or_else(|f| panic!("{text}: {}", f.message));
}

#[test]
fn a_connection_s_mark_comes_back_with_the_answer() {
    let mut nf = table(&[
        "iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark",
        "iptables -t mangle -A FORWARD -m mark --mark 0 -p tcp --dport 80 -j MARK --set-mark 7",
        "iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark",
        "iptables -A FORWARD -m conntrack --ctstate NEW -m comment --comment new",
        "iptables -A FORWARD -m state --state ESTABLISHED -m comment --comment established",
    ]);
    let mut first = tcp(80);
    for hook in [Hook::Prerouting, Hook::Forward, Hook::Postrouting] {
        through(&mut nf, hook, &mut first, "eth0", "eth1");
    }
    assert_eq!(first.mark, 7);
    let mut answer = reply(&first);
    through(&mut nf, Hook::Prerouting, &mut answer, "eth1", "");
    assert_eq!(answer.mark, 7);
    through(&mut nf, Hook::Forward, &mut answer, "eth1", "eth0");
    let listed = run(&mut nf, "iptables -L FORWARD -n -v -x").unwrap();
    assert!(listed.contains("       1     1500            0    --  *      *       0.0.0.0/0            0.0.0.0/0            ctstate NEW"), "{listed}");
    assert!(listed.contains("       1     1500            0    --  *      *       0.0.0.0/0            0.0.0.0/0            state ESTABLISHED"), "{listed}");
    // A reset out of nowhere belongs to nothing; an error about a packet is related to its connection.
    run(&mut nf, "iptables -A INPUT -m conntrack --ctstate INVALID -j DROP").unwrap();
    run(&mut nf, "iptables -A INPUT -m conntrack ! --ctstate RELATED -j RETURN").unwrap();
    run(&mut nf, "iptables -A INPUT -m connmark --mark 7 -j DROP").unwrap();
    let stray = Tcp { sport: 9, dport: 10, flags: TcpFlags::RST, ..Tcp::default() };
    let mut stray = skb("10.0.0.1", "10.0.0.2", ipproto::TCP, L4::Tcp(stray), 40);
    through(&mut nf, Hook::Prerouting, &mut stray, "eth0", "");
    assert_eq!(through(&mut nf, Hook::Input, &mut stray, "eth0", ""), Fate::Drop);
    let body = IcmpBody::About(crate::icmp::quote(&first).unwrap());
    let error = Icmp { body, ..Icmp::new(3, 4, 0, 1400) };
    let mut error = skb("10.3.31.1", "10.3.34.11", ipproto::ICMP, L4::Icmp(error), 56);
    through(&mut nf, Hook::Prerouting, &mut error, "eth0", "");
    assert_eq!(through(&mut nf, Hook::Input, &mut error, "eth0", ""), Fate::Drop);
}

#[test]
fn a_connection_counts_its_bytes_and_is_forgotten() {
    let mut nf = table(&[
        "iptables -t mangle -A PREROUTING -m connbytes --connbytes 3000 --connbytes-dir both --connbytes-mode bytes -j MARK --set-mark 9",
    ]);
    let mut marks = Vec::new();
    for at_s in [0, 1, 2, 200] {
        let mut p = udp("10.0.0.1", "10.0.0.2", 1500);
        let devices = Devices { input: "eth0", output: "", fib: None, fib6: None, ports: None };
        for hook in [Hook::Prerouting, Hook::Input] {
            nf.run(hook, &mut p, devices, Time::from_ns(at_s * 1_000_000_000));
        }
        marks.push(p.mark);
    }
    assert_eq!(marks, [0, 9, 9, 0]);
    assert_eq!(nf.tracking().connections().count(), 1);
}

#[test]
fn untracked_packets_have_no_connection() {
    let mut nf = table(&[
        "iptables -t raw -A PREROUTING -p udp -j NOTRACK",
        "iptables -A INPUT -m conntrack --ctstate UNTRACKED -j DROP",
    ]);
    let mut p = udp("10.0.0.1", "10.0.0.2", 100);
    through(&mut nf, Hook::Prerouting, &mut p, "eth0", "");
    assert_eq!(through(&mut nf, Hook::Input, &mut p, "eth0", ""), Fate::Drop);
    let mut p = tcp(80);
    through(&mut nf, Hook::Prerouting, &mut p, "eth0", "");
    assert_eq!(through(&mut nf, Hook::Input, &mut p, "eth0", ""), Fate::Accept);
}

#[test]
fn what_headers_tell() {
    let mut nf = table(&[
        "iptables -t mangle -A PREROUTING -m iprange --src-range 10.3.34.1-10.3.34.20 -j MARK --or-mark 1",
        "iptables -t mangle -A PREROUTING -m mac --mac-source 00:00:00:00:00:00 -j MARK --or-mark 2",
        "iptables -t mangle -A PREROUTING -m u32 --u32 \"6&0xFF=6 && 0>>22&0x3C@0&0xFFFF=80\" -j MARK --or-mark 4",
        "iptables -t mangle -A PREROUTING -m addrtype --dst-type MULTICAST -j MARK --or-mark 8",
        "iptables -t mangle -A PREROUTING -m statistic --mode nth --every 2 --packet 1 -j MARK --or-mark 16",
        "iptables -t mangle -A OUTPUT -m string --string x --algo bm -j MARK --or-mark 32",
    ]);
    let mut first = tcp(80);
    through(&mut nf, Hook::Prerouting, &mut first, "eth0", "");
    assert_eq!(first.mark, 7);
    let mut second = tcp(81);
    through(&mut nf, Hook::Prerouting, &mut second, "eth0", "");
    assert_eq!(second.mark, 3 | 16);
    let fib = Fib::default();
    let mut other = udp("10.9.0.1", "224.0.0.5", 100);
    nf.run(
        Hook::Prerouting,
        &mut other,
        Devices { input: "eth0", output: "", fib: Some(&fib), fib6: None, ports: None },
        Time::ZERO,
    );
    assert_eq!(other.mark, 2 | 8);
    assert_eq!(nf.unsimulated(), ["iptables -m string: not simulated; a rule with it matches no packet"]);
}

#[test]
fn a_rejected_packet_says_how() {
    let mut nf = table(&[
        "iptables -A FORWARD -p tcp -j REJECT --reject-with tcp-reset",
        "iptables -A FORWARD -j REJECT --reject-with icmp-admin-prohibited",
    ]);
    assert_eq!(through(&mut nf, Hook::Forward, &mut tcp(1), "eth0", "eth1"), Fate::Reject(None));
    let mut p = udp("10.0.0.1", "10.0.0.2", 100);
    assert_eq!(through(&mut nf, Hook::Forward, &mut p, "eth0", "eth1"), Fate::Reject(Some(13)));
}

#[test]
fn nft_marks_classifies_and_sets_dscp() {
    let mut nf = Netfilter::default();
    nft(
        &mut nf,
        "table inet s {\n set p { type inet_service; flags interval; elements = { 5000-5010 } }\n chain post { type filter hook postrouting priority mangle; ct mark != 0 \
         meta mark set ct mark; meta mark 0 jump c; ct mark set meta mark; meta priority set meta mark map { 1 : 1:10, 3 : 1:30 }; ip dscp set ef; }\n chain c { tcp \
         dport @p meta mark set 1 return; oifname \"ppp*\" meta mark set 5 return; meta mark set 3 counter; }\n}\n",
    );
    let mut p = tcp(5001);
    through(&mut nf, Hook::Output, &mut p, "", "eth0");
    through(&mut nf, Hook::Postrouting, &mut p, "", "eth0");
    assert_eq!((p.mark, p.priority, p.tos()), (1, Handle::new(1, 0x10).0, 46 << 2));
    let mut p = tcp(80);
    through(&mut nf, Hook::Output, &mut p, "", "eth0");
    through(&mut nf, Hook::Postrouting, &mut p, "", "eth0");
    assert_eq!((p.mark, p.priority), (3, Handle::new(1, 0x30).0));
    let mut answer = reply(&p);
    through(&mut nf, Hook::Prerouting, &mut answer, "eth0", "");
    through(&mut nf, Hook::Postrouting, &mut answer, "", "eth1");
    assert_eq!(answer.mark, 3);
    assert!(nf.nft_ruleset(Time::ZERO).contains("meta mark set 0x00000003 counter packets 1 bytes 1500"));
}

#[test]
fn nft_compares_and_decides() {
    let mut nf = Netfilter::default();
    nft(
        &mut nf,
        "add table ip f\nadd chain ip f i { type filter hook input priority 0; policy drop; }\nadd rule ip f i tcp flags & (syn|ack) == syn accept\n\
         add rule ip f i ip saddr != 10.0.0.0/8 meta length > 1000 accept\nadd rule ip f i udp dport vmap { 2000 : accept, 2001 : drop }\n\
         add rule ip f i limit rate over 1/second burst 1 packets reject\n",
    );
    let mut check = |mut p: Skb| through(&mut nf, Hook::Input, &mut p, "eth0", "");
    let syn = L4::Tcp(Tcp { sport: 1, dport: 2, flags: TcpFlags::SYN, ..Tcp::default() });
    assert_eq!(check(skb("10.0.0.1", "10.0.0.2", ipproto::TCP, syn, 60)), Fate::Accept);
    assert_eq!(check(udp("192.168.0.1", "10.0.0.2", 1500)), Fate::Accept);
    assert_eq!(check(udp("10.0.0.1", "10.0.0.2", 1500)), Fate::Accept);
    assert_eq!(check(tcp(80)), Fate::Drop);
    assert_eq!(check(tcp(80)), Fate::Reject(Some(3)));
}

#[test]
fn nft_at_a_device() {
    let mut nf = Netfilter::default();
    nft(
        &mut nf,
        "table netdev n { chain in { type filter hook ingress device eth0 priority 0; ip dscp set cs1; }\n chain e { type filter hook egress device eth0 priority 0; udp \
         dport 2000 meta priority set 1:20; tcp dport 1 drop; }\n}\n",
    );
    let mut p = udp("10.0.0.1", "10.0.0.2", 100);
    assert_eq!(nf.run_device(true, "eth0", &mut p, Time::ZERO), Fate::Accept);
    assert_eq!((p.tos(), p.priority), (8 << 2, 0));
    nf.run_device(false, "eth0", &mut p, Time::ZERO);
    assert_eq!(p.priority, Handle::new(1, 0x20).0);
    assert_eq!(nf.run_device(false, "eth0", &mut tcp(1), Time::ZERO), Fate::Drop);
    assert_eq!(nf.run_device(false, "eth1", &mut tcp(1), Time::ZERO), Fate::Accept);
}
