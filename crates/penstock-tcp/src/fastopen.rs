//! What a host has to do with TCP Fast Open: cookies, those kept of peers, the listener's queue, black holes.
//!
//! Follows: linux v6.12 net/ipv4/tcp_fastopen.c, net/ipv4/tcp_metrics.c `tcp_fastopen_cache_get`, `tcp_fastopen_cache_set`, net/core/request_sock.c
//! `reqsk_fastopen_remove`, lib/siphash.c; RFC 7413.
//! Differs: none known.

use penstock_model::tcp_metrics::{FastOpenMetrics, TcpMetrics};
use penstock_model::{Span, Time};
use penstock_packet::FastOpen;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Bits of `net.ipv4.tcp_fastopen`.
pub mod bits {
    /// A client may.
    pub const CLIENT: u32 = 1;
    /// A server may.
    pub const SERVER: u32 = 2;
    /// A client sends data without a cookie.
    pub const CLIENT_NO_COOKIE: u32 = 4;
    /// A server asks for none.
    pub const SERVER_NO_COOKIE: u32 = 0x200;
    /// Every socket that listens has it on.
    pub const ALL_LISTENERS: u32 = 0x400;
}

/// What a socket connects with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Active {
    /// Bytes that the program has written.
    pub bytes: u64,
    /// The peer's segment size, where it is kept; 0: it is not.
    pub mss: u16,
    /// The option that the SYN bears.
    pub option: Option<FastOpen>,
    /// Whether the SYN carries data.
    pub data: bool,
    /// It is tried again after a black hole was seen.
    pub check: bool,
    /// Why not (`tcpi_fastopen_client_fail`).
    pub fail: u8,
}

impl Active {
    /// What the SYN of a client is to have: by what is kept of the peer, whether a black hole was seen, and whether a cookie is needed.
    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_fastopen_cookie_check
    pub fn new(bytes: u64, kept: Option<&TcpMetrics>, hole: Hole, no_cookie: bool) -> Active {
        let kept = kept.map(|row| row.fast).unwrap_or_default();
        let mut how = Active { bytes, mss: kept.mss, check: hole == Hole::Over, ..Active::default() };
        let cookie = FastOpen::new(kept.cookie(), kept.exp).filter(|c| !c.cookie().is_empty());
        if hole == Hole::Seen {
            return how;
        }
        if no_cookie {
            how.data = true;
            return how;
        }
        (how.option, how.data) = match cookie {
            Some(cookie) => (Some(cookie), true),
            None => (Some(FastOpen::request(kept.try_exp == 1)), false),
        };
        how.fail = u8::from(!how.data);
        how
    }
}

/// What a SYN-ACK has told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Learned {
    /// The peer's segment size.
    pub mss: u16,
    /// Its cookie.
    pub cookie: Option<FastOpen>,
    /// A SYN with data, or what answered it, was lost.
    pub syn_drop: bool,
    /// The other form of the option is to be tried.
    pub try_exp: u8,
}

impl Learned {
    /// Keeps it.
    //= linux v6.12 net/ipv4/tcp_metrics.c tcp_fastopen_cache_set
    pub fn keep(&self, row: &mut FastOpenMetrics, jiffies: u64) {
        if self.mss > 0 {
            row.mss = self.mss;
        }
        match self.cookie.filter(|c| !c.cookie().is_empty()) {
            Some(cookie) => row.set_cookie(cookie.cookie(), cookie.exp),
            None if self.try_exp > row.try_exp && row.cookie().is_empty() && !row.exp => {
                row.try_exp = self.try_exp;
            }
            None => {}
        }
        if self.syn_drop {
            row.syn_loss = row.syn_loss.wrapping_add(1);
            row.last_syn_loss = jiffies;
        } else {
            row.syn_loss = 0;
        }
    }
}

/// Whether something on the way swallows what goes by Fast Open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hole {
    /// Nothing is known of that.
    None,
    /// It was seen, and nothing is tried for a while.
    Seen,
    /// It was seen, and is tried again.
    Over,
}

/// What a host remembers of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Blackhole {
    times: u32,
    since: Time,
}

impl Blackhole {
    /// One was seen; `timeout`: `tcp_fastopen_blackhole_timeout_sec`. Whether it counts.
    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_fastopen_active_disable
    pub fn seen(&mut self, timeout: u32, now: Time) -> bool {
        if timeout > 0 {
            (self.since, self.times) = (now, self.times.saturating_add(1));
        }
        timeout > 0
    }
    /// Whether connections do without.
    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_fastopen_active_should_disable
    pub fn state(&self, timeout: u32, now: Time) -> Hole {
        if timeout == 0 || self.times == 0 {
            return Hole::None;
        }
        let factor = 1_i64 << (self.times - 1).min(6);
        if now < self.since + Span::from_secs(factor * i64::from(timeout)) { Hole::Seen } else { Hole::Over }
    }
    /// A connection that tried again has brought data.
    pub fn works_again(&mut self) {
        self.times = 0;
    }
}

/// A key for cookies, of 16 bytes as `TCP_FASTOPEN_KEY` takes it.
pub type Key = [u8; 16];

/// SipHash-2-4.
//= linux v6.12 lib/siphash.c siphash
fn siphash(key: &Key, data: &[u8]) -> u64 {
    let word = |bytes: &[u8]| {
        let mut w = [0; 8];
        w[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(w)
    };
    let (k0, k1) = (word(&key[..8]), word(&key[8..]));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let round = |v: &mut [u64; 4]| {
        v[0] = v[0].wrapping_add(v[1]);
        v[2] = v[2].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[1]);
        v[0] = v[0].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].rotate_left(32);
    };
    let mut take = |m: u64| {
        v[3] ^= m;
        round(&mut v);
        round(&mut v);
        v[0] ^= m;
    };
    let words = data.chunks_exact(8);
    let rest = word(words.remainder()) | (data.len() as u64) << 56;
    words.for_each(|w| take(word(w)));
    take(rest);
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

/// The cookie of a client at `src` for a server at `dst`.
//= linux v6.12 net/ipv4/tcp_fastopen.c __tcp_fastopen_cookie_gen_cipher
pub fn cookie(key: &Key, src: IpAddr, dst: IpAddr) -> [u8; 8] {
    let hash = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => siphash(key, &[src.octets(), dst.octets()].concat()),
        (IpAddr::V6(src), IpAddr::V6(dst)) => siphash(key, &[src.octets(), dst.octets()].concat()),
        _ => 0,
    };
    hash.to_le_bytes()
}

/// The queue of a socket that listens: connections whose handshake is not over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Queue {
    /// The most of them (`TCP_FASTOPEN`); 0: it has none.
    pub most: u32,
    /// Keys of its own (`TCP_FASTOPEN_KEY`).
    pub keys: Vec<Key>,
    /// `TCP_FASTOPEN_NO_COOKIE`.
    pub no_cookie: bool,
    len: u32,
    /// Those that were reset when they had been accepted count for a minute more: when each ends.
    reset: VecDeque<Time>,
}

/// What is made of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// A connection is made with it.
    pub child: bool,
    /// The option of the SYN-ACK.
    pub reply: Option<FastOpen>,
    /// What is counted, as `nstat` names it.
    pub counts: [Option<&'static str>; 2],
}

/// A SYN as it comes to such a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Syn {
    /// Its option.
    pub option: Option<FastOpen>,
    /// Whether it brings data.
    pub data: bool,
    /// Who sends it.
    pub src: IpAddr,
    /// To which address.
    pub dst: IpAddr,
}

impl Queue {
    /// The queue of a socket that begins to listen with this backlog.
    //= linux v6.12 net/ipv4/af_inet.c __inet_listen_sk
    pub fn listens(&mut self, setting: u32, backlog: u32) {
        let both = bits::SERVER | bits::ALL_LISTENERS;
        if setting & both == both && self.most == 0 {
            self.most = backlog;
        }
    }
    /// Whether a SYN makes a connection, and what it is told.
    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_try_fastopen
    pub fn opens(&mut self, setting: u32, keys: &[Key], no_cookie: bool, syn: &Syn, now: Time) -> Verdict {
        let mut verdict = Verdict::default();
        let asked = syn.option.is_some_and(|o| o.cookie().is_empty());
        if asked {
            verdict.counts[0] = Some("TcpExtTCPFastOpenCookieReqd");
        }
        if setting & bits::SERVER == 0 || !(syn.data || syn.option.is_some()) || self.most == 0 {
            return verdict;
        }
        if self.len >= self.most {
            if self.reset.front().is_none_or(|&ends| ends > now) {
                verdict.counts[1] = Some("TcpExtTCPFastOpenListenOverflow");
                return verdict;
            }
            self.reset.pop_front();
            self.len -= 1;
        }
        let keys = if self.keys.is_empty() { keys } else { &self.keys };
        let exp = syn.option.is_some_and(|o| o.exp);
        let made = |key: &Key| FastOpen::new(&cookie(key, syn.src, syn.dst), exp);
        let passes = setting & bits::SERVER_NO_COOKIE != 0 || self.no_cookie || no_cookie;
        let first = keys.first().and_then(made);
        if !passes {
            let Some(option) = syn.option else { return verdict };
            if asked {
                verdict.reply = first;
                return verdict;
            }
            let by = keys.iter().position(|k| made(k).is_some_and(|c| c.cookie() == option.cookie()));
            match by {
                None => {
                    verdict.counts[0] = Some("TcpExtTCPFastOpenPassiveFail");
                    verdict.reply = first;
                    return verdict;
                }
                Some(0) => {}
                Some(_) => {
                    verdict.reply = first;
                    verdict.counts[1] = Some("TcpExtTCPFastOpenPassiveAltKey");
                }
            }
        }
        verdict.child = true;
        // A request and the second key each leave the other place.
        if let Some(free) = verdict.counts.iter_mut().find(|c| c.is_none()) {
            *free = Some("TcpExtTCPFastOpenPassive");
        }
        self.len += 1;
        verdict
    }
    /// A connection's handshake is over; `reset`: by an RST, where a program has accepted it.
    //= linux v6.12 net/core/request_sock.c reqsk_fastopen_remove
    pub fn leaves(&mut self, reset: bool, now: Time) {
        if reset {
            self.reset.push_back(now + Span::from_secs(60));
        } else {
            self.len = self.len.saturating_sub(1);
        }
    }
    /// How many are in it.
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 248, 0, 2));
    const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 2));

    fn keys() -> Vec<Key> {
        vec![*b"\xf7\x63\xbf\xa0\x81\x3d\x80\xed\x30\x1d\x64\xcd\x90\x4a\xbc\xce"]
    }
    fn syn(cookie: Option<&[u8]>) -> Syn {
        let option = cookie.and_then(|c| FastOpen::new(c, false));
        Syn { option, data: true, src: CLIENT, dst: SERVER }
    }

    /// The cookies that google/packetdrill's scripts expect of Linux.
    #[test]
    fn cookies_are_linux_s() {
        assert_eq!(cookie(&keys()[0], CLIENT, SERVER), [0x00, 0xab, 0xaa, 0xab, 0xe8, 0xe9, 0x54, 0xc2]);
        assert_eq!(cookie(&[0; 16], CLIENT, SERVER), [0x93, 0xb7, 0xaa, 0x4f, 0x55, 0x0f, 0x8a, 0x1a]);
    }

    #[test]
    fn a_listener_takes_the_cookie_it_has_given() {
        let mut queue = Queue { most: 2, ..Queue::default() };
        let asked = queue.opens(3, &keys(), false, &syn(Some(&[])), Time::ZERO);
        assert!(!asked.child && asked.counts == [Some("TcpExtTCPFastOpenCookieReqd"), None]);
        let given = asked.reply.unwrap();
        let wrong = queue.opens(3, &keys(), false, &syn(Some(&[1; 8])), Time::ZERO);
        assert!(!wrong.child && wrong.reply == Some(given));
        assert_eq!(wrong.counts[0], Some("TcpExtTCPFastOpenPassiveFail"));
        for _ in 0..2 {
            let taken = queue.opens(3, &keys(), false, &syn(Some(given.cookie())), Time::ZERO);
            assert!(taken.child && taken.reply.is_none());
            assert_eq!(taken.counts[0], Some("TcpExtTCPFastOpenPassive"));
        }
        // The queue is full; one that is reset counts for a minute more.
        let full = queue.opens(3, &keys(), false, &syn(Some(given.cookie())), Time::ZERO);
        assert!(!full.child && full.counts[1] == Some("TcpExtTCPFastOpenListenOverflow"));
        queue.leaves(true, Time::ZERO);
        let early = Time::ZERO + Span::from_secs(59);
        assert!(!queue.opens(3, &keys(), false, &syn(Some(given.cookie())), early).child);
        let late = Time::ZERO + Span::from_secs(61);
        assert!(queue.opens(3, &keys(), false, &syn(Some(given.cookie())), late).child);
        queue.leaves(false, late);
        assert!(queue.opens(0x202, &keys(), false, &syn(None), late).child);
        assert!(!queue.opens(1, &keys(), false, &syn(Some(given.cookie())), late).child);
    }

    #[test]
    fn a_second_key_is_answered_with_the_first() {
        let mut queue = Queue { most: 9, ..Queue::default() };
        let both = [[7; 16], keys()[0]];
        let taken = queue.opens(2, &both, false, &syn(Some(&cookie(&both[1], CLIENT, SERVER))), Time::ZERO);
        assert!(taken.child);
        assert_eq!(taken.reply.unwrap().cookie(), cookie(&both[0], CLIENT, SERVER));
        assert!(taken.counts.contains(&Some("TcpExtTCPFastOpenPassiveAltKey")));
        assert!(taken.counts.contains(&Some("TcpExtTCPFastOpenPassive")));
    }

    #[test]
    fn a_black_hole_is_avoided_twice_as_long_each_time() {
        let mut hole = Blackhole::default();
        let at = |s| Time::ZERO + Span::from_secs(s);
        assert!(!hole.seen(0, at(0)));
        assert_eq!(hole.state(3_600, at(0)), Hole::None);
        assert!(hole.seen(3_600, at(0)));
        assert_eq!((hole.state(3_600, at(3_599)), hole.state(3_600, at(3_600))), (Hole::Seen, Hole::Over));
        hole.seen(3_600, at(4_000));
        assert_eq!(hole.state(3_600, at(11_199)), Hole::Seen);
        hole.works_again();
        assert_eq!(hole.state(3_600, at(4_001)), Hole::None);
    }
}
