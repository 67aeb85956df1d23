//! Traffic from real sockets: `penstock send`, `penstock recv`, `penstock echo`.
//!
//! A datagram of ours begins with a [`Header`]: its number and the moment it was handed to the kernel. The receiver's kernel
//! stamps its arrival (`SO_TIMESTAMPNS`), so that one-way delay needs no help of the receiver's scheduling.

pub mod draw;
mod echo;
mod info;
mod recv;
mod send;
mod stream;

pub use echo::echo;
pub use recv::{RecvOptions, RecvReport, RecvSample, recv};
pub use send::{Goal, SendOptions, SendReport, SendSample, send};

use crate::plan::Plan;
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use penstock_model::traffic::{Load, TcpWishes};

/// Port of a flow that names none: this and its number.
pub const PORT: u16 = 20_000;

/// Port of servers that send every datagram back (RFC 862).
pub const ECHO_PORT: u16 = 7;

/// First bytes of a datagram of ours.
const MAGIC: u32 = 0x5045_4e53;

/// What a datagram begins with, when it is long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Its number, from 0.
    pub number: u64,
    /// When it was sent, ns of the real-time clock.
    pub sent_ns: i64,
}

impl Header {
    /// Its length, bytes. Shorter datagrams carry none and are only counted.
    pub const LEN: usize = 20;

    /// Writes it at the begin of a datagram that has room for it.
    pub fn write(self, datagram: &mut [u8]) {
        if let Some(head) = datagram.get_mut(..Header::LEN) {
            head[..4].copy_from_slice(&MAGIC.to_be_bytes());
            head[4..12].copy_from_slice(&self.number.to_be_bytes());
            head[12..20].copy_from_slice(&self.sent_ns.to_be_bytes());
        }
    }

    /// Reads it; `None` for what is none of ours.
    pub fn read(datagram: &[u8]) -> Option<Header> {
        let head = datagram.get(..Header::LEN)?;
        let number = |at: usize| <[u8; 8]>::try_from(&head[at..at + 8]).map(u64::from_be_bytes).ok();
        (head[..4] == MAGIC.to_be_bytes()).then_some(())?;
        Some(Header { number: number(4)?, sent_ns: number(12)? as i64 })
    }
}

/// The real-time clock, ns.
pub(crate) fn clock() -> i64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |t| t.num_nanoseconds())
}

/// Whether time is exact: then nobody waits by reading the clock.
pub(crate) fn exact() -> bool {
    std::env::var_os("PENSTOCK_EXACT").is_some()
}

/// Sleeps until a moment of the real-time clock; the last 50 µs by reading it, where time is not exact.
pub(crate) fn wait_until(moment_ns: i64) {
    const SPIN: i64 = 50_000;
    let early = if exact() { 0 } else { SPIN };
    loop {
        let left = moment_ns - clock();
        if left <= 0 {
            return;
        }
        if left > early {
            std::thread::sleep(std::time::Duration::from_nanos((left - early) as u64));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Where the sender of a flow finds the recording it is to send.
pub(crate) fn trace_file(n: usize) -> std::path::PathBuf {
    crate::names::folder().join(format!("flow{n}.trace"))
}

/// The port that a flow of a plan is received on.
pub(crate) fn port(plan: &Plan, n: usize) -> u16 {
    let flow = &plan.flows[n];
    match (flow.port, &flow.load, flow.receiver) {
        (0, Load::Echo { .. }, _) => ECHO_PORT,
        (0, _, Some(other)) if other != n => port(plan, other),
        (0, ..) => PORT + n as u16,
        (port, ..) => port,
    }
}

/// The command line of one end of a flow of a plan.
pub(crate) fn arguments(plan: &Plan, n: usize, sends: bool, epoch_ns: i64) -> Vec<String> {
    let flow = &plan.flows[n];
    let mut words = vec![plan.penstock.to_string_lossy().into_owned()];
    let mut put = |word: &str, value: String| words.extend([word.to_owned(), value]);
    let echoes = matches!(flow.load, Load::Echo { .. });
    let port = port(plan, n).to_string();
    if sends {
        put("send", flow.addr.to_string());
    } else {
        words.push("recv".to_owned());
    }
    let mut put = |word: &str, value: String| words.extend([word.to_owned(), value]);
    put("--port", port);
    put("--epoch", epoch_ns.to_string());
    // Of connections that come and go by themselves nobody asks for curves.
    let many = matches!(flow.load, Load::Bytes(_))
        && plan.flows.iter().any(|f| f.receiver.is_some() && f.receiver == flow.receiver.or(Some(n)));
    put("--interval", if many { "0ns".to_owned() } else { format!("{}ns", plan.sample.as_ns()) });
    put("--warmup", format!("{}ns", plan.warmup.as_ns()));
    let until = if sends { flow.until.unwrap_or(plan.duration).min(plan.duration) } else { plan.duration };
    put("--until", format!("{}ns", until.as_ns()));
    if sends {
        put("--seed", plan.seed.to_string());
        put("--stream", flow.name.clone());
        put("--tos", flow.tos.to_string());
        put("--mark", flow.mark.to_string());
        put("--drift", flow.drift_ppm.to_string());
        put("--jitter", format!("{}ns", flow.jitter.as_ns()));
        if let Load::Replay(_) = flow.load {
            put("--trace", trace_file(n).to_string_lossy().into_owned());
        }
        for (word, value) in draw::words(&flow.load) {
            put(word, value);
        }
    }
    if let Some(tcp) = flow.tcp.as_ref().map(TcpWishes::resolved) {
        // Linux's own TCP stands in for ns-2's.
        if let Some(cc) = tcp.cc.filter(|_| tcp.ns2.is_none()) {
            put("--cc", cc);
        }
        if let Some(mss) = tcp.mss {
            put("--mss", mss.to_string());
        }
        if let Some(bytes) = tcp.sndbuf.filter(|_| sends) {
            put("--sndbuf", bytes.to_string());
        }
        if let Some(wish) = tcp.ecn.filter(|_| sends && tcp.ns2.is_none()) {
            put("--ecn", wish.to_string());
        }
        if let Some(wish) = tcp.sack.filter(|_| sends && tcp.ns2.is_none()) {
            put("--sack", wish.to_string());
        }
        if let Some(bytes) = tcp.rcvbuf.filter(|_| !sends) {
            put("--rcvbuf", bytes.to_string());
        }
    } else {
        words.push("--udp".to_owned());
    }
    if echoes {
        words.push("--echo".to_owned());
    }
    // Behind the run's end nothing is counted, and nobody is told that a port is closed.
    let end = if sends {
        ("--end", format!("{}ns", plan.duration.as_ns()))
    } else {
        ("--hold", "500ms".to_owned())
    };
    words.extend([end.0.to_owned(), end.1]);
    if flow.trace || echoes || plan.flows.iter().any(|f| f.receiver == Some(n)) {
        words.push("--each".to_owned());
    }
    words.push("--json".to_owned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::traffic::{Dist, Sizes};

    #[test]
    fn headers_come_back() {
        let head = Header { number: 7, sent_ns: -3 };
        let mut datagram = [0u8; 30];
        head.write(&mut datagram);
        assert_eq!(Header::read(&datagram), Some(head));
        assert_eq!(Header::read(&datagram[..19]), None);
        datagram[0] = 0;
        assert_eq!(Header::read(&datagram), None);
        let mut short = [0u8; 5];
        head.write(&mut short);
        assert_eq!(short, [0; 5]);
    }

    /// A sender and a receiver of this process on the loopback device.
    #[test]
    fn datagrams_arrive_and_are_accounted_for() {
        let epoch_ns = clock() + 20_000_000;
        let port = 20_000 + (std::process::id() % 20_000) as u16;
        let ms = penstock_model::Span::from_ms;
        let receiver = std::thread::spawn(move || {
            recv(&RecvOptions {
                port,
                epoch_ns,
                until: Some(ms(150)),
                interval: ms(50),
                udp: true,
                ..Default::default()
            })
        });
        std::thread::sleep(std::time::Duration::from_millis(10));
        let load = Load::Packets { size: Sizes::Constant(200), gap: Dist::Constant(ms(5)) };
        let goal = Goal { host: "127.0.0.1".into(), port, udp: true };
        let options =
            SendOptions { epoch_ns, until: Some(ms(100)), interval: ms(50), load, ..SendOptions::default() };
        let sent = send(&goal, &options).unwrap();
        let received = receiver.join().unwrap().unwrap();
        let late_us = sent.late_us.expect("it has sent");
        assert!(late_us.min >= 0.0, "{sent:?}");
        // It began at most 20 ms before the moment that the end is counted from. What a busy machine sends later than a gap may be behind that.
        let least = if late_us.max < 5000.0 { 20 } else { 1 };
        assert!((least..=24).contains(&sent.sent_packets), "{sent:?}");
        assert_eq!((received.received_packets, received.bytes), (sent.sent_packets, sent.sent_packets * 200));
        assert!(received.owd_ms.is_some_and(|d| d.min > 0.0 && d.p50 < 100.0), "{received:?}");
    }

    #[test]
    fn tcp_carries_what_it_was_given() {
        let epoch_ns = clock();
        let port = 40_001 + (std::process::id() % 20_000) as u16;
        let ms = penstock_model::Span::from_ms;
        let receiver = std::thread::spawn(move || {
            recv(&RecvOptions {
                port,
                epoch_ns,
                until: Some(ms(3000)),
                interval: ms(50),
                once: true,
                ..Default::default()
            })
        });
        std::thread::sleep(std::time::Duration::from_millis(30));
        let goal = Goal { host: "127.0.0.1".into(), port, udp: false };
        let options =
            SendOptions { epoch_ns, load: Load::Bytes(300_000), interval: ms(50), ..SendOptions::default() };
        let sent = send(&goal, &options).unwrap();
        let received = receiver.join().unwrap().unwrap();
        assert_eq!((sent.sent_bytes, received.bytes), (300_000, 300_000));
        assert!(sent.end_s.is_some());
    }

    /// What a connection has taken before its end is sent behind it, and counted.
    #[test]
    fn a_connection_is_counted_until_all_is_there() {
        let epoch_ns = clock();
        let port = 40_001 + (std::process::id() + 7_000) as u16 % 20_000;
        let ms = penstock_model::Span::from_ms;
        let receiver = std::thread::spawn(move || {
            recv(&RecvOptions { port, epoch_ns, until: Some(ms(3000)), once: true, ..Default::default() })
        });
        std::thread::sleep(std::time::Duration::from_millis(30));
        let goal = Goal { host: "127.0.0.1".into(), port, udp: false };
        let load = Load::Greedy;
        let (until, end) = (Some(ms(200)), Some(ms(3000)));
        let options = SendOptions { epoch_ns, until, end, load, ..SendOptions::default() };
        let sent = send(&goal, &options).unwrap();
        let received = receiver.join().unwrap().unwrap();
        assert!(sent.sent_bytes > 0 && sent.end_s.is_some_and(|end| end >= 0.2), "{:?}", sent.end_s);
        assert_eq!(received.bytes, sent.sent_bytes);
        assert_eq!(received.received_packets, sent.sent_packets);
    }

    /// Of two senders each is told apart by its port, what is sent while it warms up is not counted, and answers come back over IPv6.
    #[test]
    fn probes_of_two_senders_come_back() {
        let epoch_ns = clock() + 200_000_000;
        let port = 50_000 + (std::process::id() % 10_000) as u16;
        let ms = penstock_model::Span::from_ms;
        let receiver = std::thread::spawn(move || {
            let (until, warmup) = (Some(ms(1000)), ms(100));
            let options = RecvOptions { port, epoch_ns, until, warmup, udp: true, ..Default::default() };
            recv(&RecvOptions { echo: true, each: true, ..options })
        });
        std::thread::sleep(std::time::Duration::from_millis(150));
        let sender = |host: &str, gap| {
            let load = Load::Echo { size: Sizes::Constant(64), gap: Dist::Constant(ms(gap)) };
            let goal = Goal { host: host.into(), port, udp: true };
            let options =
                SendOptions { epoch_ns, until: Some(ms(200)), warmup: ms(100), load, ..Default::default() };
            let options = SendOptions { echo: true, each: true, end: Some(ms(800)), ..options };
            std::thread::spawn(move || send(&goal, &options).unwrap())
        };
        // Where there is no IPv6, two of IPv4.
        let six = if std::net::UdpSocket::bind("[::1]:0").is_ok() { "::1" } else { "127.0.0.1" };
        let senders = [sender("127.0.0.1", 10), sender(six, 20)];
        let sent = senders.map(|s| s.join().unwrap());
        let received = receiver.join().unwrap().unwrap();
        assert_eq!(received.senders.len(), 2, "{received:?}");
        for sent in &sent {
            let (_, own) = received.senders.iter().find(|(port, _)| *port == sent.port).unwrap();
            assert_eq!(own.received_packets, sent.sent_packets, "{sent:?}");
            assert_eq!(own.arrivals.len(), sent.packets.len());
            assert!(sent.packets.len() as u64 > sent.sent_packets, "some were of the warm-up: {sent:?}");
            assert!(sent.round_trips.iter().all(|(at, rtt)| *at >= 100_000_000 && *rtt > 0), "{sent:?}");
            // Answers of probes that went out just before the end of the warm-up count too.
            assert!(sent.round_trips.len() as u64 >= sent.sent_packets, "{sent:?}");
        }
        assert_eq!(received.received_packets, sent.iter().map(|s| s.sent_packets).sum::<u64>());
    }

    #[test]
    fn pages_are_connections_of_their_own() {
        let epoch_ns = clock();
        let port = 10_000 + (std::process::id() % 10_000) as u16;
        let ms = penstock_model::Span::from_ms;
        let receiver = std::thread::spawn(move || {
            let options =
                RecvOptions { port, epoch_ns, until: Some(ms(1500)), each: true, ..Default::default() };
            recv(&options)
        });
        std::thread::sleep(std::time::Duration::from_millis(100));
        let load = Load::Pages { size: Sizes::Constant(200_000), think: Dist::Constant(ms(50)) };
        let options = SendOptions { epoch_ns, until: Some(ms(1000)), load, ..SendOptions::default() };
        let sent = send(&Goal { host: "127.0.0.1".into(), port, udp: false }, &options).unwrap();
        let received = receiver.join().unwrap().unwrap();
        let pages = received.senders.len();
        assert!((2..=20).contains(&pages) && sent.transfers_ms.len() >= pages - 1, "{sent:?}");
        assert_eq!(received.bytes, sent.sent_bytes);
        assert!(received.senders[0].1.bytes == 200_000 && received.received_packets > 0, "{received:?}");
        assert_eq!(received.received_packets, sent.sent_packets);
        assert_eq!(sent.end_s, None);
    }

    #[test]
    fn a_clock_that_is_fast_and_packets_that_are_early() {
        let load = Load::Packets {
            size: Sizes::Constant(100),
            gap: Dist::Constant(penstock_model::Span::from_ms(10)),
        };
        let due = |options: &SendOptions| send::due(options).take(1000).map(|p| p.0).collect::<Vec<_>>();
        let right = SendOptions { load, ..SendOptions::default() };
        assert_eq!(due(&right)[999], 9_990_000_000);
        let wrong = |seed| due(&SendOptions { drift_ppm: 100, seed, ..right.clone() })[999] - 9_990_000_000;
        let errors: Vec<i64> = (1..=40).map(wrong).collect();
        assert!(errors.iter().all(|ns| ns.abs() <= 999_000), "{errors:?}");
        assert!(
            errors.iter().any(|ns| *ns < -500_000) && errors.iter().any(|ns| *ns > 500_000),
            "{errors:?}"
        );
        let early = SendOptions { jitter: penstock_model::Span::from_us(200), ..right.clone() };
        let off: Vec<i64> = due(&early).iter().zip(due(&right)).map(|(is, was)| is - was).collect();
        assert!(off.iter().all(|ns| ns.abs() <= 200_000) && off.iter().any(|ns| ns.abs() > 150_000));
        assert!(off.iter().sum::<i64>().abs() < 20_000_000, "they do not add up");
    }
}
