//! WireGuard: packets go out within UDP to the peer whose addresses they are for, once a handshake has made keys.
//!
//! Messages have their lengths, their order and their times; nothing is encrypted, but nothing here reads what is within. [`send`] is the way in,
//! [`receive`] the way out, [`timers`] what happens by itself.
//!
//! Follows: linux v6.12 `drivers/net/wireguard/` `device.c`, `noise.c` (`add_new_keypair`, `wg_noise_received_with_keypair`), `allowedips.c`,
//! `netlink.c` (`wg_set_device`, `set_peer`).
//! Differs: no message is asked for a cookie (the kernel does so from 512 waiting handshakes on); a sender whose packet no peer takes hears an ICMP
//! error and not an error of its call; a device stays in the network namespace that it was made in.

mod receive;
mod send;
mod timers;

use crate::{Effect, Host, Timer, timer};
use penstock_lang::wg::{Key, PeerSet, Set};
use penstock_model::{KernelError, Span, Time};
use penstock_packet::Packet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// `REKEY_TIMEOUT`, `REJECT_AFTER_TIME`, `REKEY_AFTER_TIME`, `KEEPALIVE_TIMEOUT`, seconds.
const REKEY_TIMEOUT: i64 = 5;
const REJECT_AFTER_TIME: i64 = 180;
const REKEY_AFTER_TIME: i64 = 120;
const KEEPALIVE_TIMEOUT: i64 = 10;
/// `MAX_STAGED_PACKETS`.
const MAX_STAGED: usize = 128;
/// `COUNTER_WINDOW_SIZE`, and words of the ring of bits that it is of.
const WINDOW: u64 = 8192 - 64;
const WORDS: u64 = 8192 / 64;

/// A WireGuard device.
#[derive(Default)]
pub(crate) struct WireGuard {
    /// Its keys, private and public.
    pub identity: Option<(Key, Key)>,
    /// `incoming_port`; 0: it has had none yet.
    pub port: u16,
    /// The mark of what it sends.
    pub fwmark: u32,
    /// In the order in which they came, which is their number; none is given twice.
    peers: BTreeMap<u32, Peer>,
    next_peer: u32,
    by_key: BTreeMap<Key, u32>,
    /// Whose an index is that this end has given out.
    indices: BTreeMap<u32, u32>,
    allowed: Allowed,
    /// The timers of all peers.
    due: BTreeSet<(Time, u32, timers::Kind)>,
    /// What commands ask for, to be done at once: the peer, and whether a keepalive is to go.
    asked: Vec<(u32, bool)>,
}

/// Where a peer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    /// Its address and port.
    pub addr: SocketAddr,
    /// The address of this machine that it speaks to, and the device it does so by.
    src: Option<IpAddr>,
    src_if: u32,
}

/// `wg_peer`.
pub(crate) struct Peer {
    pub key: Key,
    pub psk: Option<Key>,
    pub endpoint: Option<Endpoint>,
    /// `persistent_keepalive_interval`, seconds; 0: none.
    pub keepalive: u16,
    /// What is sent to it and may come from it, in the order it was said.
    pub allowed: Vec<(IpAddr, u8)>,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    /// `walltime_last_handshake`.
    pub last_handshake: Option<Time>,
    staged: VecDeque<Packet>,
    /// The indices that name it.
    named: Vec<u32>,
    /// The index of our initiation that has no answer yet.
    initiation: Option<u32>,
    /// When the last message of a handshake was sent.
    last_sent: Option<Time>,
    /// The latest initiation's time, as its sender had it; when it was taken.
    latest_timestamp: u64,
    last_taken: Option<Time>,
    current: Option<Box<Keypair>>,
    previous: Option<Box<Keypair>>,
    next: Option<Box<Keypair>>,
    timers: [Option<Time>; timers::KINDS],
    attempts: u32,
    last_minute: bool,
    another_keepalive: bool,
}

/// `noise_keypair`.
struct Keypair {
    /// The index that the other end names, and that of the other end.
    index: u32,
    remote: u32,
    initiator: bool,
    birth: Time,
    /// May be sent with, may be received with.
    sends: bool,
    receives: bool,
    /// The number of the next packet.
    counter: u64,
    replay: Replay,
}

/// `noise_replay_counter`: which of the latest numbers have come.
struct Replay {
    counter: u64,
    seen: [u64; WORDS as usize],
}

impl Replay {
    /// Whether a packet with this number is none that has come before, nor too old to tell.
    //= linux v6.12 drivers/net/wireguard/receive.c counter_validate
    fn takes(&mut self, theirs: u64) -> bool {
        let theirs = theirs + 1;
        if WINDOW + theirs < self.counter {
            return false;
        }
        let word = theirs >> 6;
        if theirs > self.counter {
            let now = self.counter >> 6;
            for i in 1..=(word - now).min(WORDS) {
                self.seen[((i + now) % WORDS) as usize] = 0;
            }
            self.counter = theirs;
        }
        let (at, bit) = ((word % WORDS) as usize, 1 << (theirs & 63));
        let new = self.seen[at] & bit == 0;
        self.seen[at] |= bit;
        new
    }
}

/// `allowedips`: whose an address is, by the longest prefix.
#[derive(Default)]
pub(crate) struct Allowed {
    /// By family (4, 6) and length, from the longest on; the bits of the prefix, filled up with zeros.
    by_length: BTreeMap<(bool, std::cmp::Reverse<u8>), BTreeMap<u128, u32>>,
}

fn bits(addr: IpAddr) -> (bool, u128) {
    match addr {
        IpAddr::V4(a) => (false, u128::from(u32::from(a)) << 96),
        IpAddr::V6(a) => (true, a.into()),
    }
}

fn masked(bits: u128, len: u8) -> u128 {
    if len == 0 { 0 } else { bits & (u128::MAX << (128 - u32::from(len))) }
}

impl Allowed {
    /// The prefix is a peer's from now on, and no other's. Whose it was.
    fn insert(&mut self, (addr, len): (IpAddr, u8), peer: u32) -> Option<u32> {
        let (six, bits) = bits(addr);
        self.by_length.entry((six, std::cmp::Reverse(len))).or_default().insert(masked(bits, len), peer)
    }
    /// The prefix is nobody's any more.
    fn remove(&mut self, (addr, len): (IpAddr, u8)) {
        let (six, bits) = bits(addr);
        let length = (six, std::cmp::Reverse(len));
        let Some(of) = self.by_length.get_mut(&length) else { return };
        of.remove(&masked(bits, len));
        if of.is_empty() {
            self.by_length.remove(&length);
        }
    }
    fn lookup(&self, addr: IpAddr) -> Option<u32> {
        let (six, bits) = bits(addr);
        let (from, to) = ((six, std::cmp::Reverse(u8::MAX)), (six, std::cmp::Reverse(0)));
        let mut of = self.by_length.range(from..=to);
        of.find_map(|((_, len), of)| of.get(&masked(bits, len.0)).copied())
    }
}

impl Peer {
    fn new(key: Key) -> Peer {
        Peer {
            key,
            psk: None,
            endpoint: None,
            keepalive: 0,
            allowed: Vec::new(),
            rx_bytes: 0,
            tx_bytes: 0,
            last_handshake: None,
            staged: VecDeque::new(),
            named: Vec::new(),
            initiation: None,
            last_sent: None,
            latest_timestamp: 0,
            last_taken: None,
            current: None,
            previous: None,
            next: None,
            timers: [None; timers::KINDS],
            attempts: 0,
            last_minute: false,
            another_keepalive: false,
        }
    }
    fn keypair(&mut self, index: u32) -> Option<&mut Keypair> {
        let all = [&mut self.current, &mut self.previous, &mut self.next];
        all.into_iter().flatten().map(|k| &mut **k).find(|k| k.index == index)
    }
    fn indices(&self) -> impl Iterator<Item = u32> {
        let pairs = [&self.current, &self.previous, &self.next].map(|k| k.as_ref().map(|k| k.index));
        pairs.into_iter().chain([self.initiation]).flatten()
    }
}

impl WireGuard {
    /// The peers, in the order they came.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values()
    }
    /// An index names a peer from now on.
    fn name(&mut self, index: u32, n: u32) {
        if let Some(peer) = self.peers.get_mut(&n) {
            peer.named.push(index);
            self.indices.insert(index, n);
        }
    }
    /// Indices that no keys and no handshake have any more name nobody.
    fn forget_indices(&mut self, n: u32) {
        let Some(peer) = self.peers.get_mut(&n) else { return };
        let kept: Vec<u32> = peer.indices().collect();
        let gone: Vec<u32> = peer.named.extract_if(.., |index| !kept.contains(index)).collect();
        gone.iter().for_each(|index| {
            self.indices.remove(index);
        });
    }
    /// All packets of all peers that wait for keys.
    fn staged(&self) -> impl Iterator<Item = &Packet> {
        self.peers.values().flat_map(|p| &p.staged)
    }
    /// `add_new_keypair`.
    fn add_keypair(&mut self, n: u32, new: Keypair) {
        let Some(peer) = self.peers.get_mut(&n) else { return };
        let index = new.index;
        if new.initiator {
            peer.previous = match peer.next.take() {
                Some(next) => Some(next),
                None => peer.current.take(),
            };
            peer.current = Some(Box::new(new));
        } else {
            (peer.next, peer.previous) = (Some(Box::new(new)), None);
        }
        self.name(index, n);
        self.forget_indices(n);
    }
}

/// `wg_birthdate_has_expired`: whether a moment is so many seconds ago. Both are known as the clock of ticks has them.
fn expired(since: Time, seconds: i64, now: Time) -> bool {
    since + Span::from_secs(seconds) <= now
}

/// The public key of a private one (RFC 7748).
pub(crate) fn public_of(private: &Key) -> Key {
    Key(x25519_dalek::x25519(private.0, x25519_dalek::X25519_BASEPOINT_BYTES))
}

impl Host {
    pub(super) fn wg(&mut self, ifindex: u32) -> Option<&mut WireGuard> {
        self.devices.get_mut(ifindex)?.wireguard.as_deref_mut()
    }
    fn wg_peer(&mut self, ifindex: u32, n: u32) -> Option<&mut Peer> {
        self.wg(ifindex)?.peers.get_mut(&n)
    }
    /// Now, as the clock that ticks has it (`ktime_get_coarse_boottime_ns`).
    fn coarse(&self, now: Time) -> Time {
        Time::from_ns(timer::ticks(self.hz, now) * (1_000_000_000 / i64::from(self.hz)))
    }
    /// Whether a WireGuard device listens at a port: what comes there and is no message of its own is dropped without a word (`wg_receive`).
    #[inline]
    pub(crate) fn is_wireguards(&self, port: u16) -> bool {
        !self.tunnels.wireguards.is_empty() && self.tunnels.wireguards.contains_key(&port)
    }
    /// All packets that wait in WireGuard devices.
    pub(crate) fn wireguard_packets(&self) -> impl Iterator<Item = &Packet> {
        self.devices.iter().filter_map(|d| d.wireguard.as_deref()).flat_map(WireGuard::staged)
    }

    /// `wg_open`, `wg_stop`.
    ///
    /// # Errors
    /// EADDRINUSE where another device has its port.
    pub(crate) fn wireguard_up(&mut self, ifindex: u32, up: bool, now: Time) -> Result<(), KernelError> {
        if !up {
            self.wireguard_stop(ifindex);
            return Ok(());
        }
        self.wireguard_listen(ifindex)?;
        let Some(wg) = self.wg(ifindex) else { return Ok(()) };
        let all = wg.peers.iter().map(|(n, p)| (*n, p.keepalive > 0)).collect();
        wg.asked = all;
        self.timers.insert(now, Timer::WireGuard(ifindex));
        Ok(())
    }
    /// `wg_socket_init`.
    fn wireguard_listen(&mut self, ifindex: u32) -> Result<(), KernelError> {
        let (low, high) = self.port_range().unwrap_or((32_768, 60_999));
        let Some(device) = self.devices.get_mut(ifindex) else { return Ok(()) };
        let Some(wg) = device.wireguard.as_deref_mut() else { return Ok(()) };
        let busy = |port: &u16| self.tunnels.wireguards.get(port).is_some_and(|&i| i != ifindex);
        if busy(&wg.port) {
            return Err(KernelError::errno(crate::link::EADDRINUSE));
        }
        if wg.port == 0 {
            // Any that is free, from a random one on.
            let count = u32::from(high.saturating_sub(low)) + 1;
            let first = device.rng.below(count);
            let mut all = (0..count).map(|n| low + ((first + n) % count) as u16);
            wg.port =
                all.find(|port| !busy(port)).ok_or_else(|| KernelError::errno(crate::link::EADDRINUSE))?;
        }
        let port = wg.port;
        self.tunnels.wireguards.retain(|_, i| *i != ifindex);
        self.tunnels.wireguards.insert(port, ifindex);
        Ok(())
    }
    fn wireguard_stop(&mut self, ifindex: u32) {
        self.tunnels.wireguards.retain(|_, i| *i != ifindex);
        let Some(wg) = self.wg(ifindex) else { return };
        wg.indices.clear();
        wg.due.clear();
        wg.asked.clear();
        let mut gone = Vec::new();
        for peer in wg.peers.values_mut() {
            gone.extend(peer.staged.drain(..));
            (peer.initiation, peer.last_sent) = (None, None);
            (peer.current, peer.previous, peer.next) = (None, None, None);
            peer.named.clear();
            peer.timers = [None; timers::KINDS];
        }
        self.timers.retain(|timer| timer != Timer::WireGuard(ifindex));
        self.wireguard_lost(ifindex, gone);
    }
    /// Packets that waited for keys go, and count.
    fn wireguard_lost(&mut self, ifindex: u32, packets: Vec<Packet>) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        device.counters.tx_dropped += packets.len() as u64;
        for packet in packets {
            self.pending.push(Effect::Dropped { packet, ifindex, place: "wireguard", reason: "no-session" });
        }
    }
    /// A device is one of WireGuard no more.
    pub(crate) fn unbind_wireguard(&mut self, ifindex: u32) {
        self.wireguard_stop(ifindex);
        if let Some(device) = self.devices.get_mut(ifindex) {
            device.wireguard = None;
        }
    }

    /// `wg_set_device`: what `wg` asks for.
    ///
    /// # Errors
    /// EADDRINUSE for a port that another device listens at.
    pub(crate) fn wireguard_set(&mut self, ifindex: u32, set: &Set, now: Time) -> Result<(), KernelError> {
        let up = self.devices.get(ifindex).is_some_and(|d| d.up);
        let Some(wg) = self.wg(ifindex) else { return Ok(()) };
        if let Some(mark) = set.fwmark {
            wg.fwmark = mark;
        }
        if let Some(port) = set.listen_port.filter(|&port| port != wg.port) {
            wg.port = port;
            if up {
                // set_port: where other ends speak to is found anew.
                wg.peers.values_mut().filter_map(|p| p.endpoint.as_mut()).for_each(|e| e.src = None);
                self.wireguard_listen(ifindex)?;
            }
        }
        if set.replace_peers {
            let all: Vec<u32> =
                self.wg(ifindex).map(|wg| wg.peers.keys().copied().collect()).unwrap_or_default();
            all.into_iter().for_each(|n| self.wireguard_remove(ifindex, n));
        }
        if let Some(private) = &set.private_key {
            self.wireguard_identity(ifindex, *private);
        }
        for peer in &set.peers {
            self.wireguard_set_peer(ifindex, peer, up);
        }
        if self.wg(ifindex).is_some_and(|wg| !wg.asked.is_empty()) {
            self.timers.insert(now, Timer::WireGuard(ifindex));
        }
        Ok(())
    }
    fn wireguard_identity(&mut self, ifindex: u32, private: Option<Key>) {
        let Some(wg) = self.wg(ifindex) else { return };
        if wg.identity.as_ref().map(|i| &i.0) == private.as_ref() {
            return;
        }
        let identity = private.map(|mut private| {
            // curve25519_clamp_secret
            private.0[0] &= 248;
            private.0[31] = private.0[31] & 127 | 64;
            let public = public_of(&private);
            (private, public)
        });
        let own = identity.as_ref().and_then(|(_, public)| wg.by_key.get(public)).copied();
        wg.identity = identity;
        // wg_noise_expire_current_peer_keypairs
        for peer in wg.peers.values_mut() {
            peer.initiation = None;
            peer.last_sent = None;
            for pair in [&mut peer.next, &mut peer.current].into_iter().flatten() {
                pair.sends = false;
            }
        }
        if let Some(n) = own {
            self.wireguard_remove(ifindex, n);
        }
    }
    fn wireguard_remove(&mut self, ifindex: u32, n: u32) {
        let Some(wg) = self.wg(ifindex) else { return };
        let Some(peer) = wg.peers.remove(&n) else { return };
        wg.by_key.remove(&peer.key);
        peer.allowed.iter().for_each(|&prefix| wg.allowed.remove(prefix));
        for index in &peer.named {
            wg.indices.remove(index);
        }
        for (kind, at) in timers::ALL.into_iter().zip(peer.timers) {
            at.map(|at| wg.due.remove(&(at, n, kind)));
        }
        self.wireguard_lost(ifindex, peer.staged.into());
    }
    /// `set_peer`.
    fn wireguard_set_peer(&mut self, ifindex: u32, set: &PeerSet, up: bool) {
        let Some(wg) = self.wg(ifindex) else { return };
        let n = match wg.by_key.get(&set.key) {
            Some(&n) if set.remove => return self.wireguard_remove(ifindex, n),
            Some(&n) => n,
            None if set.remove || set.update_only => return,
            // A peer with the device's own key is passed over.
            None if wg.identity.as_ref().is_some_and(|(_, public)| *public == set.key) => return,
            None => {
                let n = wg.next_peer;
                wg.next_peer += 1;
                wg.peers.insert(n, Peer::new(set.key));
                wg.by_key.insert(set.key, n);
                n
            }
        };
        let Some(peer) = wg.peers.get_mut(&n) else { return };
        if let Some(psk) = set.preshared_key {
            peer.psk = psk;
        }
        if let Some(addr) = set.endpoint {
            peer.endpoint = Some(Endpoint { addr, src: None, src_if: 0 });
        }
        let mut keepalive = false;
        if let Some(interval) = set.persistent_keepalive {
            keepalive = peer.keepalive == 0 && interval > 0;
            peer.keepalive = interval;
        }
        if set.replace_allowed {
            peer.allowed.drain(..).for_each(|prefix| wg.allowed.remove(prefix));
        }
        for &prefix in &set.allowed_ips {
            let owner = wg.allowed.insert(prefix, n);
            if owner == Some(n) {
                continue;
            }
            if let Some(other) = owner.and_then(|o| wg.peers.get_mut(&o)) {
                other.allowed.retain(|p| *p != prefix);
            }
            if let Some(peer) = wg.peers.get_mut(&n) {
                peer.allowed.push(prefix);
            }
        }
        if up {
            wg.asked.push((n, keepalive));
        }
    }
}
