//! Sets that packets add to, meters, quotas and connections counted, on packets.

use crate::netfilter::{Devices, Fate, Hook, Netfilter};
use crate::tests::{skb, udp};
use penstock_lang::nft::Options;
use penstock_model::{Kernel, Time};
use penstock_packet::headers::ipproto;
use penstock_packet::{L4, Skb, Udp};

fn filter() -> Netfilter {
    Netfilter::default().ticking(Kernel::V6_12)
}

fn nft_at(nf: &mut Netfilter, text: &str, ms: i64) -> Result<String, String> {
    let devices = ["lo", "eth0"].map(str::to_owned);
    nf.run_nft(text, None, &Options::default(), &devices, at(ms)).map_err(|f| f.message)
}

fn nft(nf: &mut Netfilter, text: &str) {
    nft_at(nf, text, 0).unwrap_or_else(|f| panic!("{text}: {f}"));
}

fn at(ms: i64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

fn send(nf: &mut Netfilter, mut p: Skb, ms: i64) -> Fate {
    let devices = Devices { input: "", output: "eth0", fib: None, fib6: None, ports: None };
    let fate = nf.run(Hook::Output, &mut p, devices, at(ms));
    match fate {
        Fate::Accept => nf.run(Hook::Postrouting, &mut p, devices, at(ms)),
        other => other,
    }
}

fn to(last: u8, port: u16) -> Skb {
    let l4 = L4::Udp(Udp { sport: 9, dport: port });
    skb("127.0.0.1", &format!("127.0.0.{last}"), ipproto::UDP, l4, 84)
}

/// Lines of the rules, and of a set.
fn lines(nf: &mut Netfilter, what: &str, ms: i64) -> String {
    let all = nft_at(nf, what, ms).unwrap();
    let wanted = |l: &&str| l.contains("counter") || l.contains("elements") || l.starts_with("\t\t\t");
    all.lines().filter(wanted).map(|l| format!("{}\n", l.trim())).collect()
}

/// The rules and the figures are those of Linux 6.18: three packets to 127.0.0.1, then one to 127.0.0.2, within 50 ms.
#[test]
fn counters_are_those_of_linux() {
    let mut nf = filter();
    nft(
        &mut nf,
        "table ip t {
 counter c1 { }
 quota q1 { over 200 bytes }
 limit l1 { rate 1/minute burst 2 packets }
 set s { type ipv4_addr; flags dynamic,timeout; timeout 1m; }
 set s2 { type ipv4_addr . inet_service; flags dynamic; }
 set s3 { type ipv4_addr; flags dynamic; size 1; }
 set s4 { typeof ct id . ct direction; flags dynamic; timeout 5m; }
 set s5 { type ipv4_addr; counter; elements = { 127.0.0.1 counter packets 5 bytes 6, 127.0.0.2 }; }
 set s6 { type ipv4_addr; flags interval; counter; elements = { 127.0.0.0/8, 10.0.0.0-10.0.0.5 counter packets 1 bytes 2 }; }
 set s7 { type ipv4_addr; flags interval,timeout; timeout 1h; elements = { 127.0.0.0/8 timeout 10s, 10.0.0.0/8 }; }
 set s8 { type ipv4_addr; flags dynamic; limit rate over 1/second burst 1 packets; counter; }
 map m { type ipv4_addr : mark; flags dynamic,timeout; timeout 30s; }
 chain c { type filter hook output priority 0;
  update @s { ip daddr counter }
  update @s { ip daddr timeout 10s }
  add @s2 { ip daddr . udp dport limit rate 1/second burst 3 packets counter } counter
  add @s3 { ip daddr } counter
  add @s4 { ct id . ct direction limit rate over 1/second burst 1 packets } counter
  ip daddr @s5 counter
  ip daddr @s6 counter
  ip daddr @s7 counter
  ip daddr != @s5 counter
  add @m { ip daddr : 5 } counter
  meter mm { ip daddr timeout 20s limit rate over 1/second burst 1 packets } counter
  meter m2 { ip daddr counter } counter
  quota over 168 bytes counter
  quota 168 bytes counter
  counter name c1 quota name q1 counter
  limit name \"l1\" counter
  ct count over 1 counter
  ct count 1 counter
  add @s8 { ip daddr } counter
 }
}",
    );
    for (n, (last, port)) in [(1, 1000), (1, 1001), (1, 1002), (2, 1003)].into_iter().enumerate() {
        // Each a connection of its own, as each ping was; the key of `s2` has one port.
        let mut p = to(last, port);
        if let L4::Udp(u) = &mut p.l4 {
            (u.sport, u.dport) = (port, 53);
        }
        send(&mut nf, p, 10 * n as i64);
    }
    let told = nft_at(&mut nf, "list chain ip t c", 50).unwrap();
    let told: Vec<&str> = told.lines().skip(3).map(str::trim).take_while(|l| *l != "}").collect();
    assert_eq!(
        told,
        [
            "update @s { ip daddr counter }",
            "update @s { ip daddr timeout 10s }",
            "add @s2 { ip daddr . udp dport limit rate 1/second burst 3 packets counter } counter packets 4 bytes 336",
            "add @s3 { ip daddr } counter packets 3 bytes 252",
            "add @s4 { ct id . ct direction limit rate over 1/second burst 1 packets } counter packets 0 bytes 0",
            "ip daddr @s5 counter packets 4 bytes 336",
            "ip daddr @s6 counter packets 4 bytes 336",
            "ip daddr @s7 counter packets 4 bytes 336",
            "ip daddr != @s5 counter packets 0 bytes 0",
            "add @m { ip daddr : 0x00000005 } counter packets 4 bytes 336",
            "meter mm size 65535 { ip daddr timeout 20s limit rate over 1/second burst 1 packets } counter packets 2 bytes 168",
            "meter m2 size 65535 { ip daddr counter } counter packets 4 bytes 336",
            "quota over 168 bytes used 168 bytes counter packets 2 bytes 168",
            "quota 168 bytes used 168 bytes counter packets 2 bytes 168",
            "counter name \"c1\" quota name \"q1\" counter packets 2 bytes 168",
            "limit name \"l1\" counter packets 2 bytes 168",
            "ct count over 1 counter packets 3 bytes 252",
            "ct count 1 counter packets 1 bytes 84",
            "add @s8 { ip daddr } counter packets 2 bytes 168",
        ]
    );
    let mut shown = |what: &str| nft_at(&mut nf, what, 30).unwrap();
    for (set, elements) in [
        (
            "set ip t s",
            "127.0.0.1 counter packets 6 bytes 504 expires 9s992ms, 127.0.0.2 counter packets 2 bytes 168 expires 10s",
        ),
        ("set ip t s2", "127.0.0.1 . 53 limit rate 1/second burst 3 packets counter packets 3 bytes 252,"),
        ("set ip t s3", "127.0.0.1 "),
        ("set ip t s5", "127.0.0.1 counter packets 8 bytes 258, 127.0.0.2 counter packets 1 bytes 84"),
        (
            "set ip t s6",
            "10.0.0.0-10.0.0.5 counter packets 1 bytes 2, 127.0.0.0/8 counter packets 4 bytes 336",
        ),
        ("set ip t s7", "10.0.0.0/8 expires 59m59s972ms, 127.0.0.0/8 timeout 10s expires 9s972ms"),
        (
            "set ip t s8",
            "127.0.0.1 limit rate over 1/second burst 1 packets counter packets 2 bytes 168, \
                         127.0.0.2 limit rate over 1/second burst 1 packets counter packets 0 bytes 0",
        ),
        ("map ip t m", "127.0.0.1 expires 29s972ms : 0x00000005, 127.0.0.2 expires 30s : 0x00000005"),
        (
            "meter ip t mm",
            "127.0.0.1 limit rate over 1/second burst 1 packets timeout 20s expires 19s992ms, \
                           127.0.0.2 limit rate over 1/second burst 1 packets timeout 20s expires 20s",
        ),
        ("quota ip t q1", "over 200 bytes used 200 bytes"),
        ("counter ip t c1", "packets 4 bytes 336"),
    ] {
        let told = shown(&format!("list {set}"));
        assert!(told.contains(elements), "{elements}\n{told}");
    }
    assert!(
        shown("list set ip t s4")
            .contains(" . original limit rate over 1/second burst 1 packets expires 4m59s")
    );
    assert!(shown("list set ip t s3").contains("\t\tsize 1\n\t\tflags dynamic\n"));
    assert!(nft_at(&mut nf, "list set ip t mm", 30).is_err());
}

/// What Linux 6.18 did: a set of two is full until those whose time is over are taken out; `update` gives the rule's time or the set's.
#[test]
fn times_and_sizes() {
    let mut nf = filter();
    nft(
        &mut nf,
        "table ip t {
 set f { type ipv4_addr; flags dynamic,timeout; timeout 60s; elements = { 127.0.0.1 timeout 100s, 127.0.0.3 } }
 set f2 { type ipv4_addr; flags dynamic,timeout; elements = { 127.0.0.1 timeout 100s, 127.0.0.3 } }
 set f3 { type ipv4_addr; flags dynamic,timeout; elements = { 127.0.0.1 timeout 100s, 127.0.0.3 } }
 set f4 { type ipv4_addr; flags dynamic,timeout; timeout 1s; gc-interval 100s; size 2; }
 set f5 { type ipv4_addr; flags dynamic,timeout; timeout 1s; size 2; }
 chain c { type filter hook output priority 0;
  update @f { ip daddr } counter
  update @f2 { ip daddr } counter
  update @f3 { ip daddr timeout 200s } counter
  add @f4 { ip daddr } counter
  add @f5 { ip daddr } counter
 }
}",
    );
    for last in [1, 1, 3, 1, 5, 1] {
        send(&mut nf, to(last, 53), 1000);
    }
    assert_eq!(
        lines(&mut nf, "list table ip t", 1004),
        "elements = { 127.0.0.1 timeout 1m40s expires 59s996ms, 127.0.0.3 expires 59s996ms,\n127.0.0.5 expires 59s996ms }\n\
         elements = { 127.0.0.1, 127.0.0.3,\n127.0.0.5 }\n\
         elements = { 127.0.0.1 timeout 1m40s expires 3m19s996ms, 127.0.0.3,\n127.0.0.5 timeout 3m20s expires 3m19s996ms }\n\
         elements = { 127.0.0.1 expires 996ms, 127.0.0.3 expires 996ms }\n\
         elements = { 127.0.0.1 expires 996ms, 127.0.0.3 expires 996ms }\n\
         update @f { ip daddr } counter packets 6 bytes 504\n\
         update @f2 { ip daddr } counter packets 6 bytes 504\n\
         update @f3 { ip daddr timeout 3m20s } counter packets 6 bytes 504\n\
         add @f4 { ip daddr } counter packets 5 bytes 420\n\
         add @f5 { ip daddr } counter packets 5 bytes 420\n"
    );
    send(&mut nf, to(1, 53), 2200);
    let told = lines(&mut nf, "list chain ip t c", 2200);
    assert!(told.contains("add @f4 { ip daddr } counter packets 5 bytes 420"), "{told}");
    assert!(told.contains("add @f5 { ip daddr } counter packets 6 bytes 504"), "{told}");
    let full = "Could not process rule: Too many open files in system";
    assert_eq!(nft_at(&mut nf, "add element ip t f4 { 127.0.0.77 }", 2200).unwrap_err(), full);
    // An element that is entered again gets the time it is entered with, where that is another.
    let mut entered = |what: &str| {
        nft_at(&mut nf, &format!("add element ip t f {{ 127.0.0.5 {what} }}"), 2000).unwrap();
        lines(&mut nf, "list set ip t f", 2000)
    };
    assert!(entered("timeout 10s").contains("127.0.0.5 timeout 10s expires 10s"));
    assert!(entered("expires 2s").contains("127.0.0.5 expires 2s"));
    assert!(entered("").contains("127.0.0.5 expires 2s"));
}

/// Refusals, with what nft 1.0.6 on Linux 6.18 said.
#[test]
fn refusals_are_the_kernels() {
    let mut nf = filter();
    nft(
        &mut nf,
        "table ip t { chain c { type filter hook output priority 0; }
 set plain { type ipv4_addr; }
 set port { type inet_service; }
 set sized { type ipv4_addr; size 5; }
 set timed { type ipv4_addr; timeout 5s; }
 set fixed { type ipv4_addr; flags constant; }
 set conns { typeof ip saddr; flags dynamic; ct count over 5; }
 set range { type ipv4_addr; flags interval,timeout; }
 map memory { type ipv4_addr : mark; policy memory; size 5; timeout 5s; }
 map marks { typeof ip saddr . tcp dport : meta mark; flags dynamic; }
 set counted { type ipv4_addr; flags dynamic; counter; }
}",
    );
    let no = "Could not process rule: Operation not supported";
    for (text, message) in [
        ("add set ip t x { type ipv4_addr; flags interval,dynamic; }", no),
        (
            "add set ip t x { type ipv4_addr; counter; quota 10 mbytes; limit rate 3/second; }",
            "Could not process rule: Argument list too long",
        ),
        ("add rule ip t c add @range { ip saddr }", no),
        ("add rule ip t c add @sized { ip saddr timeout 5s }", no),
        ("add rule ip t c add @port { tcp dport }", no),
        ("add rule ip t c add @memory { ip saddr : 1 }", no),
        ("add rule ip t c add @fixed { ip saddr }", "Could not process rule: Device or resource busy"),
        (
            "add rule ip t c add @conns { tcp dport }",
            "datatype mismatch: expected IPv4 address, expression has type internet network service",
        ),
        ("add rule ip t c add @nope { tcp dport }", "No such file or directory"),
        ("add rule ip t c update @conns { ip saddr counter }", no),
        ("add rule ip t c update @marks { ip saddr . tcp dport timeout 5s : 5 }", no),
        (
            "add rule ip t c update @marks { ip saddr . tcp dport : 5 timeout 5s }",
            "Data expression timeouts are not supported",
        ),
        ("add rule ip t c add @plain { ip saddr counter }", "Could not process rule: Invalid argument"),
        ("add rule ip t c meter x size 5 { ip saddr timeout 5s ct count over 5 } drop", no),
        ("add rule ip t c meter plain { ip saddr counter } drop", no),
        ("add rule ip t c quota over 3 kbytes used 1 mbytes", "Could not process rule: Invalid argument"),
        ("add rule ip t c counter name nope", "Could not process rule: No such file or directory"),
        ("add rule ip t c limit rate 5/second burst 0 packets", "packet limit burst must be > 0"),
        ("add element ip t plain { 9.9.9.9 timeout 5s }", "Could not process rule: Invalid argument"),
        ("add element ip t plain { 9.9.9.9 counter }", "missing statement in set declaration"),
        (
            "add element ip t counted { 2.2.2.2 limit rate 1/second }",
            "statement mismatch, element expects limit, but set has type counter",
        ),
        (
            "add element ip t counted { 2.2.2.2 counter limit rate 1/second }",
            "number of statements mismatch, set expects 1 but element has 2",
        ),
        (
            "reset set ip t plain",
            "syntax error, unexpected set, expecting counter or counters or quotas or quota",
        ),
    ] {
        assert_eq!(nft_at(&mut nf, text, 0).unwrap_err(), message, "{text}");
    }
    nft(&mut nf, "add rule ip t c add @plain { ip saddr }");
    nft(&mut nf, "add rule ip t c add @timed { ip saddr timeout 5s }");
    nft(
        &mut nf,
        "add rule ip t c meter x { ip saddr counter }; add counter ip t k; add rule ip t c counter name k",
    );
    assert!(nft_at(&mut nf, "list set ip t plain", 0).unwrap().contains("size 65535"));
    for text in ["delete set ip t plain", "delete counter ip t k"] {
        assert_eq!(nft_at(&mut nf, text, 0).unwrap_err(), "Could not process rule: Device or resource busy");
    }
    // A meter goes with its rule.
    assert!(nft_at(&mut nf, "list meters", 0).unwrap().contains("meter x {"));
    nft(&mut nf, "flush chain ip t c");
    assert!(!nft_at(&mut nf, "list meters", 0).unwrap().contains("meter x {"));
    nft(&mut nf, "delete counter ip t k; delete set ip t plain");
}

/// Sets of joined keys are listed as nft 1.0.6 sorts them, and found all the same.
#[test]
fn joined_keys() {
    let mut nf = filter();
    nft(
        &mut nf,
        "table ip t {
 set a { type mark . ipv4_addr; elements = { 1 . 1.2.3.4, 2 . 1.2.3.4, 0x100 . 1.2.3.4, 0x200 . 1.2.3.4, 1 . 1.2.3.5, 0x100 . 2.2.3.4 } }
 set b { typeof ct id . ct direction; elements = { 1 . original, 0x100 . original, 0x10000 . original, 2 . reply, 2 . original, 0x102 . reply } }
 set c { type ifname . ipv4_addr; elements = { \"eth0\" . 1.1.1.1, \"ath1\" . 1.1.1.2, \"b\" . 1.1.1.1, \"eth10\" . 1.1.1.1, \"zz\" . 1.0.0.1 } }
 set d { type ipv4_addr . inet_service; elements = { 127.0.0.1 . 22, 127.0.0.1 . 256, 127.0.0.2 . 53, 2.1.1.1 . 22, 1.1.2.1 . 22 } }
 chain c { type filter hook output priority 0; ip daddr . udp dport @d counter; meta mark set 0x100; meta mark . ip daddr @a drop; }
}",
    );
    let mut shown = |set: &str| {
        let all = nft_at(&mut nf, &format!("list set ip t {set}"), 0).unwrap();
        let (_, elements) = all.split_once("elements = { ").unwrap();
        elements.split_once(" }").unwrap().0.split(",\n\t\t\t     ").map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        shown("a"),
        [
            "0x00000001 . 1.2.3.4",
            "0x00000002 . 1.2.3.4",
            "0x00000100 . 1.2.3.4",
            "0x00000200 . 1.2.3.4",
            "0x00000100 . 2.2.3.4",
            "0x00000001 . 1.2.3.5"
        ]
    );
    assert_eq!(
        shown("b"),
        ["65536 . original", "256 . original", "1 . original", "2 . original", "2 . reply", "258 . reply"]
    );
    assert_eq!(
        shown("c"),
        [
            "\"zz\" . 1.0.0.1",
            "\"b\" . 1.1.1.1",
            "\"eth0\" . 1.1.1.1",
            "\"eth10\" . 1.1.1.1",
            "\"ath1\" . 1.1.1.2"
        ]
    );
    assert_eq!(
        shown("d"),
        ["127.0.0.1 . 256", "127.0.0.1 . 22", "2.1.1.1 . 22", "1.1.2.1 . 22", "127.0.0.2 . 53"]
    );
    assert_eq!(send(&mut nf, to(2, 53), 0), Fate::Accept);
    assert_eq!(send(&mut nf, to(1, 53), 0), Fate::Accept);
    let mut p = udp("127.0.0.1", "2.2.3.4", 84);
    p.mark = 0;
    assert_eq!(send(&mut nf, p, 0), Fate::Drop);
    assert!(lines(&mut nf, "list chain ip t c", 0).contains("@d counter packets 1 bytes 84"));
}

/// A flood of SYNs is held by a meter; who keeps trying a port stays locked out as long as it tries.
#[test]
fn recipes() {
    let mut nf = filter();
    nft(
        &mut nf,
        "table ip t {
 set locked { type ipv4_addr; flags dynamic,timeout; timeout 1m; size 65535; }
 map last { type ipv4_addr : inet_service; flags dynamic; }
 chain c { type filter hook output priority 0; policy accept;
  ip daddr @locked update @locked { ip daddr } drop
  udp dport 22 meter ssh { ip daddr limit rate over 3/minute burst 2 packets } add @locked { ip daddr } drop
  add @last { ip daddr : udp dport }
  delete @last { ip daddr : udp dport }
 }
}",
    );
    let mut fates = |ms: i64| send(&mut nf, to(7, 22), ms);
    let all: Vec<Fate> = [0, 100, 200, 50_000, 105_000, 170_000].into_iter().map(&mut fates).collect();
    use Fate::{Accept, Drop};
    assert_eq!(all, [Accept, Accept, Drop, Drop, Drop, Accept]);
    assert!(!nft_at(&mut nf, "list map ip t last", 170_000).unwrap().contains("elements"));
}

/// What scripts for home routers do with ACKs, long downloads and guests.
#[test]
fn a_home_router() {
    let mut nf = filter();
    nft(
        &mut nf,
        "define guests = { 127.0.0.7 }
table inet tags # so that the next line works
delete table inet tags
table inet tags {
 map prio { type dscp : classid ; elements = {ef : 1:11, cs5 : 1:11, cs0 : 1:13, cs1 : 1:15} }
 set acks { typeof ct id . ct direction
   flags dynamic;
   timeout 5m
 }
 set fast {typeof ct id . ct direction
   flags dynamic;
   timeout 5m
 }
 chain half {
  numgen inc mod 1000 ge 500 return
  drop
 }
 chain tags {
  type filter hook output priority mangle; policy accept;
  meta length < 100 udp dport 5 add @acks {ct id . ct direction limit rate over 2/second burst 1 packets} counter jump half
  meta l4proto udp ip dscp != cs1 add @fast {ct id . ct direction limit rate 150/second burst 150 packets } ip dscp set cs5 counter
  meta l4proto udp ct bytes > 250 ip dscp set cs1 counter
  ip daddr $guests meter guest_dl { ip daddr limit rate over 1 kbytes/second burst 1 kbytes } counter drop comment \"guests\"
  meta priority set ip dscp map @prio counter
  ct mark set 128 counter
 }
}
",
    );
    let mut p = to(1, 5);
    let devices = Devices { input: "", output: "eth0", fib: None, fib6: None, ports: None };
    let mut seen = Vec::new();
    for n in 0..5 {
        let mut p = std::mem::replace(&mut p, to(1, 5));
        let fate = nf.run(Hook::Output, &mut p, devices, at(10 * n));
        if fate == Fate::Accept {
            nf.run(Hook::Postrouting, &mut p, devices, at(10 * n));
        } else {
            nf.let_go(&p);
        }
        seen.push((fate, p.tos() >> 2, p.priority));
    }
    // The first fits the rate, of the others none comes past the first 500 of a thousand.
    assert_eq!(seen[0], (Fate::Accept, 40, 0x0001_0011));
    assert!(seen[1..].iter().all(|s| s.0 == Fate::Drop), "{seen:?}");
    let guests: Vec<Fate> = (0..40).map(|n| send(&mut nf, to(7, 80), 1000 + n)).collect();
    let through = guests.iter().filter(|f| **f == Fate::Accept).count();
    // 1 KB a second and 1 KB of burst: 2,048 bytes at once, 84 a packet, and 39 ms more of it.
    assert_eq!(through, 24);
    let told = nft_at(&mut nf, "list ruleset", 1000).unwrap();
    assert!(told.contains("ct mark set 0x00000080 counter packets"), "{told}");
}

/// What nft 1.0.6 said of the same commands.
#[test]
fn intervals_that_overlap_are_refused_or_made_one() {
    let mut nf = Netfilter::default();
    nft(&mut nf, "add table t");
    nft(&mut nf, "add set t s { type ipv4_addr; flags interval; }");
    let mut said = |text: &str| nft_at(&mut nf, text, 0).err().unwrap_or_default();
    let within = "conflicting intervals specified";
    assert_eq!(said("add element t s { 10.0.0.0/8, 10.1.0.0/16 }"), within);
    assert_eq!(said("add element t s { 10.0.0.0/8 }"), "");
    for other in ["10.1.0.0/16", "9.0.0.0-10.5.0.0"] {
        let text = format!("add element t s {{ {other} }}");
        assert_eq!(said(&text), "interval overlaps with an existing one", "{other}");
    }
    assert_eq!(said("add element t s { 10.0.0.0/8, 11.0.0.0/8 }"), "");
    assert_eq!(
        said("add set t x { type ipv4_addr; auto-merge; }"),
        "auto-merge only works with interval sets"
    );

    nft(&mut nf, "add set t m { type ipv4_addr; flags interval; auto-merge; }");
    for add in ["10.0.0.0/8", "10.1.0.0/16", "9.0.0.0-10.5.0.0", "11.0.0.0/8, 20.0.0.1, 20.0.0.2"] {
        nft(&mut nf, &format!("add element t m {{ {add} }}"));
    }
    let shown = |nf: &mut Netfilter| nft_at(nf, "list set t m", 0).unwrap();
    assert!(shown(&mut nf).contains("elements = { 9.0.0.0-11.255.255.255, 20.0.0.1-20.0.0.2 }"));
    assert!(nft_at(&mut nf, "delete element t m { 20.0.0.1 }", 0).is_err());
    nft(&mut nf, "add element t m { 20.0.0.3 comment \"x\" }");
    assert!(shown(&mut nf).contains("20.0.0.1-20.0.0.3 comment \"x\" }"), "{}", shown(&mut nf));
    nft(&mut nf, "add element t m { 20.0.0.4 }");
    assert!(shown(&mut nf).contains("elements = { 9.0.0.0-11.255.255.255, 20.0.0.1-20.0.0.4 }"));

    nft(&mut nf, "add set t p { type inet_service; flags interval; auto-merge; timeout 1h; }");
    nft(&mut nf, "add element t p { 1-5 }");
    nft(&mut nf, "add element t p { 6 timeout 5s }");
    assert!(
        nft_at(&mut nf, "list set t p", 20)
            .unwrap()
            .contains("elements = { 1-6 timeout 5s expires 4s980ms }")
    );
}
