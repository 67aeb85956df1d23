//! Traffic from real sockets: `penstock send`, `penstock recv`, `penstock echo`.
//!
//! A datagram of ours begins with a [`Header`]: its number and the moment it was handed to the kernel. The receiver's kernel
//! stamps its arrival (`SO_TIMESTAMPNS`), so that one-way delay needs no help of the receiver's scheduling.

pub mod draw;
mod echo;
mod recv;
mod send;
mod ss;

pub use echo::echo;
pub use recv::{RecvOptions, RecvReport, RecvSample, recv};
pub use send::{Goal, SendOptions, SendReport, SendSample, send};

use crate::plan::Plan;
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use penstock_model::traffic::{Load, TcpWishes};

/// Port of a flow that names none: this and its number.
pub const PORT: u16 = 20_000;

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

/// The command line of one end of a flow of a plan.
pub(crate) fn arguments(plan: &Plan, n: usize, sends: bool, epoch_ns: i64) -> Vec<String> {
    let flow = &plan.flows[n];
    let mut words = vec![plan.penstock.to_string_lossy().into_owned()];
    let mut put = |word: &str, value: String| words.extend([word.to_owned(), value]);
    if sends {
        put("send", flow.addr.to_string());
    } else {
        words.push("recv".to_owned());
    }
    let mut put = |word: &str, value: String| words.extend([word.to_owned(), value]);
    let port = if flow.port == 0 { PORT + n as u16 } else { flow.port };
    put("--port", port.to_string());
    put("--epoch", epoch_ns.to_string());
    put("--interval", format!("{}ns", plan.sample.as_ns()));
    let until = if sends { flow.until.unwrap_or(plan.duration).min(plan.duration) } else { plan.duration };
    put("--until", format!("{}ns", until.as_ns()));
    if sends {
        put("--seed", plan.seed.to_string());
        put("--stream", flow.name.clone());
        put("--tos", flow.tos.to_string());
        put("--mark", flow.mark.to_string());
        if let Load::Replay(_) = flow.load {
            put("--trace", trace_file(n).to_string_lossy().into_owned());
        }
        for (word, value) in draw::words(&flow.load) {
            put(word, value);
        }
    }
    if let Some(tcp) = flow.tcp.as_ref().map(TcpWishes::resolved) {
        // Linux's own TCP stands in for ns-2's.
        if let Some(cc) = tcp.cc.filter(|_| sends && tcp.ns2.is_none()) {
            put("--cc", cc);
        }
        if let Some(mss) = tcp.mss {
            put("--mss", mss.to_string());
        }
        if let Some(bytes) = tcp.sndbuf.filter(|_| sends) {
            put("--sndbuf", bytes.to_string());
        }
        if let Some(bytes) = tcp.rcvbuf.filter(|_| !sends) {
            put("--rcvbuf", bytes.to_string());
        }
    } else {
        words.push("--udp".to_owned());
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
        // It began at most 20 ms before the moment that the end is counted from.
        assert!((20..=24).contains(&sent.sent_packets), "{sent:?}");
        assert_eq!((received.received_packets, received.bytes), (sent.sent_packets, sent.sent_packets * 200));
        assert!(received.owd_ms.is_some_and(|d| d.min > 0.0 && d.p50 < 100.0), "{received:?}");
        assert!(sent.late_us.is_some_and(|d| d.min >= 0.0), "{sent:?}");
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
}
