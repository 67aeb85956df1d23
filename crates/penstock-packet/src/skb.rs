//! The packet as the kernel carries it: `struct sk_buff` with what this project needs of it.

use crate::carried::Carried;
use crate::gso::{Gso, Segment};
use crate::headers::{ETH_HLEN, ETH_P_ARP, ETH_P_IP, ETH_P_IPV6, L3, L4};
use crate::role::Role;
use crate::tunnel::TunnelInfo;
use crate::wrap::Wrapped;
use penstock_model::{Handle, Time};
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::Arc;

/// A packet: one word to move, everything about it behind.
pub type Packet = Box<Skb>;

/// Headers and metadata of one packet.
///
/// In this order: what a machine that forwards an IPv4 packet reads and writes of it lies in its first 128 bytes, two lines of a cache; then what
/// only its ends ask for, then what hardly any packet has.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Skb {
    /// Length on the wire and in every queue: the frame with its Ethernet header, without preamble and FCS, bytes
    /// (`skb->len` after the device's header was put on).
    pub len: u32,
    /// `qdisc_pkt_len`: `len`, unless a size table (`stab`) changed it. Set when the packet enters a root qdisc.
    pub pkt_len: u32,
    /// `skb->priority`: 0..=15 from the ToS, or a classid.
    pub priority: u32,
    /// `skb->mark`: the firewall mark.
    pub mark: u32,
    /// Source and destination hardware addresses.
    pub eth: ([u8; 6], [u8; 6]),
    /// Index of the interface it came in by, in its present host; 0 for a packet made there.
    pub iif: u32,
    /// When it entered the queue it is in (CoDel's enqueue time).
    pub queued: Time,
    /// The socket that sent it.
    pub sender: Sender,
    /// What traffic control notes about it.
    pub tc: TcNote,
    /// Class that a filter, a mark target or a socket chose beforehand (`CLASSIFY`, `SO_PRIORITY`), or none.
    pub classid: Handle,
    /// Number of the flow the packet belongs to, for results; 0 where it belongs to none.
    pub flow: u32,
    /// Network header.
    pub l3: L3,
    /// When it was made.
    pub created: Time,
    /// Transport header.
    pub l4: L4,
    /// Number of the packet within what made it (the index in a replay, the sequence number of a datagram).
    pub seq: u64,
    /// What hardly any packet has: [`Skb::rare`].
    pub rare: Rarely,
}

/// What a queue may ask of the socket that sent a packet (`skb->sk`), on the machine of that socket; all of it unset on
/// a packet that came in, and on one that the machine itself answers with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sender {
    /// The socket's number, where `connected`.
    pub socket: u32,
    /// The socket is connected: all its packets are one flow. Not so a request (SYN-ACK), an unconnected UDP socket, a
    /// packet socket (`sk_state` TCP_CLOSE).
    pub connected: bool,
    /// It is a TCP socket.
    pub tcp: bool,
    /// How often the socket has drawn the hash anew that stands for its flow (`sk_rethink_txhash`), modulo 2^16.
    pub rehashed: u16,
    /// Bytes a second that the socket lets itself be paced by (`sk_pacing_rate`); none: all it has.
    pub pacing_rate: Option<NonZeroU64>,
    /// When the packet is to leave (`skb->tstamp`); [`Time::ZERO`]: at once.
    pub departs: Time,
}

/// The clock of a packet's time of departure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxClock {
    /// `CLOCK_TAI`.
    Tai,
    /// `CLOCK_REALTIME`.
    Realtime,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

/// What is known of [`Sender::departs`] beyond TCP's own pacing, which is by `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxTime {
    /// Its clock.
    pub clock: TxClock,
    /// Its socket has asked for times of departure (`SO_TXTIME`); else a qdisc has named this one.
    pub asked: bool,
    /// The time is the latest at which to send, and not the moment (`SOF_TXTIME_DEADLINE_MODE`).
    pub deadline: bool,
}

/// What stands behind a VLAN tag that is in the frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tagged {
    /// The tag's TCI; its ethertype is the packet's.
    pub tci: u16,
    /// Network header behind it: [`L3::Other`] where a further tag is.
    pub l3: L3,
    /// Transport header.
    pub l4: L4,
    /// What stands behind the further tag.
    pub within: Option<Box<Tagged>>,
}

/// What traffic control notes about a packet on its way through one machine. All of it is 0 or unset on a packet that
/// nothing has touched.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct TcNote {
    /// `skb->dev`: index of the device it is at.
    pub dev: u32,
    /// The class whose queue it has entered, the innermost; `ffff:ffff` ([`Handle::ROOT`]) while it is in none but the device's own.
    pub class: Handle,
    /// `skb->tc_index`: the class that a filter at the ingress hook, dsmark or tcindex chose.
    pub index: u16,
    /// How often mirred has put it into the receiving side (`skb->tc_depth`).
    pub depth: u8,
    /// What it is to the packet that was sent. For accounts; decides nothing.
    pub role: Role,
    /// `skb->tc_at_ingress`: it is just being received.
    pub at_ingress: bool,
    /// `skb->redirected`: mirred moved it here.
    pub redirected: bool,
    /// `skb->from_ingress`: it was being received when mirred moved it.
    pub from_ingress: bool,
    /// `skb->tc_skip_classify`: the next actions let it pass; an ifb gave it back.
    pub skip_classify: bool,
    /// An action has changed the IPv4 header and not its checksum: the next machine throws the packet away.
    pub bad_checksum: bool,
    /// A bit behind the IP header is wrong on the line, and so the checksum over it: whom the packet is for throws it away.
    pub damaged: bool,
    /// Its congestion mark was counted where it was set. For results; decides nothing.
    pub ce_counted: bool,
    /// There may be something in [`Skb::rare`].
    noted: bool,
}

/// What traffic control and a machine's network layer note about few packets. All of it is 0 or unset on the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rare {
    /// The devices that mirred calls within one another have sent it to, and how many of these count.
    pub nest: ([u32; 4], u8),
    /// `skb->queue_mapping`: its transmit queue.
    pub queue_mapping: u16,
    /// `skbedit` has chosen that (`netdev_xmit_skip_txqueue`).
    pub queue_chosen: bool,
    /// Among how many queues from there on its hash chooses; 0: none.
    pub queue_spread: u16,
    /// `skb->hash`, where it has chosen a transmit queue; 0: it has not.
    pub hash: u32,
    /// Its mark, where it crosses a veth pair within one network namespace, which keeps it; 0: it has none.
    pub kept_mark: u32,
    /// `skb->pkt_type` where `skbedit` has set it: 0 host, 1 broadcast, 2 multicast, 3 other host.
    pub ptype: Option<u8>,
    /// The VLAN tag beside the frame (`skb->vlan_tci`), which no length counts: ethertype and TCI.
    pub vlan: Option<(u16, u16)>,
    /// Realms of its route (`dst->tclassid`): of the source shifted by 16, and of the destination.
    pub realms: u32,
    /// Behind the tags that are in the frame, each of which the length counts. Without one beside it there are some only where a bridge has taken that off.
    pub within: Option<Box<Tagged>>,
    /// What it carries, where it is a tunnel's.
    pub carried: Option<Box<Carried>>,
    /// Behind them, a header that wraps the rest of the frame.
    pub wrapped: Option<Box<Wrapped>>,
    /// `skb->protocol` where the frame says another.
    pub declared: Option<u16>,
    /// It leaves without its Ethernet header ([`Skb::lose_head`]).
    pub headless: bool,
    /// What a tunnel is to wrap it in (a metadata `dst`).
    pub tunnel: Option<Arc<TunnelInfo>>,
    /// The mark of its connection, where it has one and the machine has looked for it (for `connmark` and `ctinfo`).
    pub ct_mark: Option<u32>,
    /// What the machine knows of its connection (`skb->_nfct`), from the hook on where connections are tracked.
    pub ct: Option<Tracked>,
    /// What rules know of it that a bridge has shown them (`struct nf_bridge_info`).
    pub bridged: Option<Bridged>,
    /// The zone of its connection.
    pub ct_zone: u16,
    /// The labels of its connection.
    pub ct_labels: u128,
    /// The bridge it came by knows no port for its destination (`l2_miss`).
    pub l2_miss: bool,
    /// It went through the action `ct`, with this zone (`tc_skb_cb(skb)->post_ct`).
    pub post_ct: Option<u16>,
    /// Addresses and ports as the inside of a translating machine has them, source and destination; none where nothing is translated.
    pub inside: Option<[(u128, u16); 2]>,
    /// The largest fragment it was put together from, bytes of the IP packet (`IPCB->frag_max_size`); 0: it came whole.
    pub frag_max_size: u32,
    /// The lengths of the fragments' data that it was put together from on a router, bytes (`skb_shinfo(skb)->frag_list`); of IPv6.
    pub came_in: Vec<u16>,
    /// Of a first fragment: how long the whole is behind the network header, as the header of UDP gives it and ICMPv6's checksum has it.
    pub datagram: Option<u16>,
    /// What stands behind the first 8 bytes of a router's advertisement, or of a question for one (RFC 4861 sections 4.1 and 4.2).
    pub message: Option<Arc<[u8]>>,
    /// Its hashes in sfb's two sets of bins; 0 where it is not counted.
    pub sfb: [u32; 2],
    /// What kind of time its time of departure is; `None`: none, or TCP's pacing.
    pub txtime: Option<TxTime>,
    /// Of what leaves by a device that hands it to others (`teql0`): that device and the next hop of its route, as `skb_dst` has them.
    pub next_hop: Option<(u32, IpAddr)>,
    /// What it is cut into ([`Skb::gso`]); `None`: it is one segment.
    pub gso: Option<Gso>,
    /// Which segment it is of one that was cut on this machine.
    pub segment: Option<Segment>,
}

/// What a machine knows of a packet's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tracked {
    /// The connection's number on that machine; none for an invalid or untracked packet.
    pub id: Option<u32>,
    /// A bit of `iptables`' states: INVALID 1, NEW 2, RELATED 4, ESTABLISHED 8, UNTRACKED 16.
    pub state: u8,
    /// It goes in the direction of the replies.
    pub reply: bool,
}

impl Rare {
    /// Of a packet that has none of it.
    pub(crate) const NONE: Rare = Rare {
        nest: ([0; 4], 0),
        queue_mapping: 0,
        queue_chosen: false,
        queue_spread: 0,
        hash: 0,
        kept_mark: 0,
        ptype: None,
        vlan: None,
        realms: 0,
        within: None,
        carried: None,
        wrapped: None,
        declared: None,
        headless: false,
        tunnel: None,
        ct_mark: None,
        ct: None,
        bridged: None,
        ct_zone: 0,
        ct_labels: 0,
        l2_miss: false,
        post_ct: None,
        inside: None,
        frag_max_size: 0,
        next_hop: None,
        came_in: Vec::new(),
        datagram: None,
        message: None,
        sfb: [0; 2],
        txtime: None,
        gso: None,
        segment: None,
    };
}

/// The place of [`Rare`] in a packet, which [`Skb::rare`] and [`Skb::rare_mut`] look into: memory of its own, which a packet has from the first
/// note on and keeps when it is used again.
#[derive(Clone, Debug, Default)]
pub struct Rarely(pub(crate) Option<Box<Rare>>);

impl Rarely {
    /// What is noted; what was noted on a packet that had this memory before is not.
    #[cold]
    fn noted(&mut self, is: bool) -> &mut Rare {
        let rare = self.0.get_or_insert_with(|| Box::new(Rare::NONE));
        if !is {
            **rare = Rare::NONE;
        }
        rare
    }
}

/// What the rules of IPv4 and IPv6 know of a frame that a bridge has shown them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bridged {
    /// The port that it came in by (`physinif`).
    pub from: u32,
    /// The port that it leaves by (`physoutdev`); 0: that is not known, or it is none.
    pub to: u32,
    /// It is through with PREROUTING, which it does not meet again.
    pub is_known: bool,
    /// Its sender, while the neighbour that its new destination belongs to is asked for (`bridged_dnat`).
    pub sender: Option<[u8; 6]>,
}

impl Clone for Skb {
    fn clone(&self) -> Skb {
        let rare = if self.tc.noted { self.rare.clone() } else { Rarely::default() };
        self.with(rare)
    }
    /// The memory for what is rare is used again.
    fn clone_from(&mut self, source: &Skb) {
        let mut rare = std::mem::take(&mut self.rare);
        if source.tc.noted {
            rare.noted(true).clone_from(source.rare());
        }
        *self = source.with(rare);
    }
}

/// The ethertype of a network header.
#[inline]
pub fn ethertype(l3: &L3) -> u16 {
    match l3 {
        L3::Ipv4(_) => ETH_P_IP,
        L3::Ipv6(_) => ETH_P_IPV6,
        L3::Arp(_) => ETH_P_ARP,
        L3::Other(p) => *p,
    }
}

impl Skb {
    /// A frame of `len` bytes (with its Ethernet header) as it is made: no mark, priority 0, of no flow, at time 0.
    #[inline]
    pub fn new(len: u32, l3: L3, l4: L4) -> Skb {
        Skb {
            len,
            pkt_len: len,
            priority: 0,
            mark: 0,
            eth: ([0; 6], [0; 6]),
            iif: 0,
            queued: Time::ZERO,
            sender: Sender::default(),
            tc: TcNote::default(),
            classid: Handle::UNSPEC,
            flow: 0,
            l3,
            created: Time::ZERO,
            seq: 0,
            l4,
            rare: Rarely::default(),
        }
    }

    /// The same packet but for what is rare.
    #[inline]
    pub(crate) fn with(&self, rare: Rarely) -> Skb {
        let Skb {
            len,
            pkt_len,
            priority,
            mark,
            eth,
            iif,
            queued,
            sender,
            tc,
            classid,
            flow,
            l3,
            created,
            seq,
            l4,
            rare: _,
        } = self;
        Skb {
            len: *len,
            pkt_len: *pkt_len,
            priority: *priority,
            mark: *mark,
            eth: *eth,
            iif: *iif,
            queued: *queued,
            sender: *sender,
            tc: tc.clone(),
            classid: *classid,
            flow: *flow,
            l3: *l3,
            created: *created,
            seq: *seq,
            l4: *l4,
            rare,
        }
    }

    /// What few packets have.
    #[inline]
    pub fn rare(&self) -> &Rare {
        static NONE: Rare = Rare::NONE;
        match &self.rare.0 {
            Some(rare) if self.tc.noted => rare,
            _ => &NONE,
        }
    }
    /// The same, to be changed.
    #[inline]
    pub fn rare_mut(&mut self) -> &mut Rare {
        let noted = std::mem::replace(&mut self.tc.noted, true);
        self.rare.noted(noted)
    }
    /// Whether there may be anything in [`Skb::rare`].
    #[inline]
    pub fn is_noted(&self) -> bool {
        self.tc.noted
    }
    /// Whether anything on its way or in this machine has left something on it that the next has to look at: an action's leave to pass, damage, what
    /// is in [`Skb::rare`].
    #[inline]
    pub fn is_touched(&self) -> bool {
        self.tc.skip_classify | self.tc.bad_checksum | self.tc.damaged | self.tc.noted
    }
    /// Forgets its connection (`nf_reset_ct`): it comes to a socket, or to another device's receiving side.
    #[inline]
    pub fn reset_ct(&mut self) {
        if self.tc.noted {
            let rare = self.rare_mut();
            (rare.ct, rare.bridged) = (None, None);
        }
    }
    /// The packet as the inside of a translating machine has it ([`Rare::inside`]), of no socket; none where nothing is translated.
    pub fn seen_inside(&self) -> Option<Skb> {
        let [(src, sport), (dst, dport)] = self.rare().inside?;
        let mut skb = self.with(Rarely::default());
        (skb.tc.noted, skb.sender) = (false, Sender::default());
        match &mut skb.l3 {
            L3::Ipv4(h) => (h.src, h.dst) = ((src as u32).into(), (dst as u32).into()),
            L3::Ipv6(h) => (h.src, h.dst) = (src.into(), dst.into()),
            _ => {}
        }
        match &mut skb.l4 {
            L4::Tcp(t) => (t.sport, t.dport) = (sport, dport),
            L4::Udp(u) => (u.sport, u.dport) = (sport, dport),
            _ => {}
        }
        Some(skb)
    }
    /// Sets the realms of its route, which mostly are none.
    #[inline]
    pub fn set_realms(&mut self, realms: u32) {
        if realms != 0 || self.tc.noted {
            self.rare_mut().realms = realms;
        }
    }
    /// The packet comes to another machine: what traffic control noted on the one it comes from is forgotten, but for what
    /// belongs to the frame. A mark that it keeps ([`Rare::kept_mark`]) is its mark.
    #[inline]
    pub fn travel(&mut self) {
        let TcNote {
            dev,
            class,
            index,
            depth,
            role: _,
            at_ingress,
            redirected,
            from_ingress,
            skip_classify,
            bad_checksum: _,
            damaged: _,
            ce_counted: _,
            noted,
        } = &mut self.tc;
        (*dev, *class, *index, *depth) = (0, Handle::UNSPEC, 0, 0);
        (*at_ingress, *redirected, *from_ingress, *skip_classify) = (false, false, false, false);
        if *noted {
            self.rare_travels();
        }
    }
    #[cold]
    fn rare_travels(&mut self) {
        if self.rare().headless {
            self.lose_head();
        }
        let rare = self.rare.noted(true);
        let (vlan, within, datagram) = (rare.vlan, rare.within.take(), rare.datagram);
        //= linux v6.12 net/ipv4/tcp_offload.c tcp_gso_segment: on its way out the segments of one that is not trusted are counted.
        let gso = rare.gso.map(|gso| Gso { dodgy: false, counted: true, ..gso });
        let mut carried = rare.carried.take();
        if let Some(carried) = &mut carried {
            carried.hashed = false;
        }
        let (wrapped, message) = (rare.wrapped.take(), rare.message.take());
        if rare.kept_mark != 0 {
            self.mark = rare.kept_mark;
        }
        self.tc.noted = vlan.is_some()
            || within.is_some()
            || wrapped.is_some()
            || datagram.is_some()
            || gso.is_some()
            || message.is_some()
            || carried.is_some();
        *rare = Rare { vlan, within, wrapped, datagram, message, gso, carried, ..Rare::NONE };
    }

    /// The ethertype.
    #[inline]
    pub fn protocol(&self) -> u16 {
        ethertype(&self.l3)
    }
    /// Network and transport header behind all tags in the frame: what a flow dissector comes to.
    #[inline]
    pub fn innermost(&self) -> (&L3, &L4) {
        let mut found = (&self.l3, &self.l4);
        let mut within = &self.rare().within;
        while let Some(tagged) = within {
            found = (&tagged.l3, &tagged.l4);
            within = &tagged.within;
        }
        found
    }
    /// The network header behind all tags in the frame, to be changed.
    pub fn innermost_l3_mut(&mut self) -> &mut L3 {
        if !self.tc.noted {
            return &mut self.l3;
        }
        let mut found = &mut self.l3;
        let mut within = &mut self.rare.noted(true).within;
        while let Some(tagged) = within {
            (found, within) = (&mut tagged.l3, &mut tagged.within);
        }
        found
    }
    /// ToS or traffic class byte; 0 for anything but IP.
    #[inline]
    pub fn tos(&self) -> u8 {
        match self.l3 {
            L3::Ipv4(h) => h.tos,
            L3::Ipv6(h) => h.traffic_class,
            _ => 0,
        }
    }
    /// Length of the headers before the transport header, those of Ethernet and IP; that of IPv4 where it is not IPv6.
    #[inline]
    pub fn headers_before_l4(&self) -> u32 {
        match self.l3 {
            L3::Ipv6(h) => ETH_HLEN + h.header_len(),
            _ => ETH_HLEN + 20,
        }
    }
    /// Length from the network header on: `len` without the Ethernet header.
    #[inline]
    pub fn network_len(&self) -> u32 {
        self.len - ETH_HLEN
    }

    /// Writes the frame's headers (Ethernet, network, transport with options) as they stand on the wire and
    /// returns their length; payload is not written. Headers that a tunnel carries stand there too, as far as there is room. `out` holds [`HEADER_MAX`] bytes.
    /// Checksums: the IPv4 header's is right, those of TCP and UDP are 0 (payload has no contents).
    pub fn header_bytes(&self, out: &mut [u8; HEADER_MAX]) -> usize {
        crate::headers_bytes::write(self, out)
    }
    /// Takes over what [`Skb::header_bytes`] wrote and somebody changed. Fields that follow from the packet (lengths,
    /// checksums, header lengths, TCP's options) stay; another ethertype or protocol than before leaves unknown what stands behind it.
    pub fn set_header_bytes(&mut self, bytes: &[u8]) {
        crate::headers_bytes::read_back(self, bytes);
    }
}

/// Bytes of headers that are written at most: Ethernet 14, IPv6 40, UDP 8, a tunnel's own 16, and within it Ethernet 14, IPv6 40, TCP 60; and as much as `ife` puts
/// before a frame. Of more than that the rest is left out, and reads as payload.
pub const HEADER_MAX: usize = 240;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::Ipv4;
    use crate::pool::Pool;
    use crate::wrap::Head;

    #[test]
    fn reused_memory_keeps_nothing() {
        let used = Skb {
            priority: 1,
            mark: 2,
            flow: 3,
            seq: 4,
            created: Time::from_ns(5),
            queued: Time::from_ns(6),
            iif: 7,
            eth: ([8; 6], [9; 6]),
            classid: Handle(10),
            tc: TcNote {
                index: 1,
                dev: 2,
                at_ingress: true,
                redirected: true,
                from_ingress: true,
                skip_classify: true,
                depth: 3,
                class: Handle(11),
                bad_checksum: true,
                damaged: true,
                ce_counted: true,
                role: Role(7),
                noted: true,
            },
            rare: Rarely(Some(Box::new(Rare {
                kept_mark: 15,
                nest: ([4; 4], 5),
                queue_mapping: 6,
                queue_chosen: true,
                queue_spread: 2,
                hash: 3,
                ptype: Some(7),
                vlan: Some((8, 9)),
                realms: 10,
                within: Some(Box::new(Tagged { tci: 1, l3: L3::Other(2), l4: L4::None, within: None })),
                carried: Some(Box::default()),
                wrapped: Some(Box::new(Wrapped {
                    head: Head::Mpls(1),
                    l3: L3::Other(2),
                    l4: L4::None,
                    within: None,
                    wrapped: None,
                })),
                declared: Some(18),
                headless: false,
                tunnel: None,
                ct_mark: Some(12),
                ct: Some(Tracked { id: Some(1), state: 2, reply: true }),
                bridged: Some(Bridged::default()),
                ct_zone: 1,
                ct_labels: 2,
                l2_miss: true,
                post_ct: Some(3),
                inside: Some([(1, 2), (3, 4)]),
                frag_max_size: 13,
                next_hop: Some((3, IpAddr::from([10, 0, 0, 1]))),
                came_in: vec![19],
                datagram: Some(14),
                message: None,
                sfb: [13, 14],
                txtime: Some(TxTime { clock: TxClock::Tai, asked: true, deadline: true }),
                gso: Some(Gso { size: 1, segs: 2, dodgy: true, counted: false, keeps_cwr: false }),
                segment: Some(Segment { number: 1, paged: true, whole: 3, ..Default::default() }),
            }))),
            ..Skb::new(60, L3::Other(1), L4::None)
        };
        let fresh = format!("{:?}", Skb::new(100, L3::Other(5), L4::None));
        let mut pool = Pool::new();
        pool.free(Box::new(used));
        // The memory for what is rare stays; nothing is noted there.
        let mut again = pool.make(100, L3::Other(5), L4::None);
        assert_eq!(again.rare(), &Rare::NONE);
        assert_eq!(again.rare_mut(), &Rare::NONE);
        (again.rare, again.tc.noted) = (Rarely::default(), false);
        assert_eq!(format!("{again:?}"), fresh);
        assert_eq!(format!("{:?}", pool.make(100, L3::Other(5), L4::None)), fresh);
    }

    #[test]
    fn a_packet_does_not_grow() {
        // A hop costs what its memory costs: two lines of a cache where it is forwarded, a third where it is sent and received.
        assert_eq!((size_of::<Skb>(), align_of::<Skb>()), (256, 64));
        let l3 = std::mem::offset_of!(Skb, l3);
        let header = size_of::<(u16, Ipv4)>();
        assert!(l3 + header <= 128, "{l3} + {header}");
        assert!(std::mem::offset_of!(Skb, l4) + 40 <= 192);
    }

    /// What few packets have goes no further than it did, and is nowhere where nothing was noted.
    #[test]
    fn what_is_rare_travels_as_far_as_the_frame() {
        let mut skb = Skb::new(60, L3::Other(1), L4::None);
        assert_eq!((skb.rare(), skb.tc.noted), (&Rare::NONE, false));
        skb.set_realms(0);
        assert!(!skb.tc.noted);
        (skb.rare_mut().vlan, skb.rare_mut().ptype) = (Some((0x8100, 5)), Some(3));
        skb.set_realms(7);
        assert_eq!(skb.rare(), &Rare { vlan: Some((0x8100, 5)), ptype: Some(3), realms: 7, ..Rare::NONE });
        skb.travel();
        assert_eq!(skb.rare(), &Rare { vlan: Some((0x8100, 5)), ..Rare::NONE });
        skb.rare_mut().vlan = None;
        skb.travel();
        assert_eq!((skb.rare(), skb.tc.noted), (&Rare::NONE, false));
    }
}
