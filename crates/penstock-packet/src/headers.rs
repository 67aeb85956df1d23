//! Header fields as plain data.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ethertype of IPv4.
pub const ETH_P_IP: u16 = 0x0800;
/// Ethertype of ARP.
pub const ETH_P_ARP: u16 = 0x0806;
/// Ethertype of IPv6.
pub const ETH_P_IPV6: u16 = 0x86dd;
/// Ethertype of Ethernet frames within GRE (transparent Ethernet bridging).
pub const ETH_P_TEB: u16 = 0x6558;
/// Any ethertype, in filters.
pub const ETH_P_ALL: u16 = 0x0003;
/// Length of an Ethernet header, bytes.
pub const ETH_HLEN: u32 = 14;

/// IP protocol numbers.
pub mod ipproto {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IPv4 in IP (RFC 2003).
    pub const IPIP: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 in IP (RFC 4213).
    pub const IPV6: u8 = 41;
    /// GRE (RFC 2784).
    pub const GRE: u8 = 47;
    /// The fragment header of IPv6 (RFC 8200).
    pub const FRAGMENT: u8 = 44;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
}

/// The network header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum L3 {
    /// RFC 791.
    Ipv4(Ipv4),
    /// RFC 8200.
    Ipv6(Ipv6),
    /// RFC 826.
    Arp(Arp),
    /// Some other ethertype, contents unknown.
    Other(u16),
}

/// An IPv4 header without options (RFC 791). Total length and checksum follow from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4 {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Type of service byte: DSCP in the upper six bits, ECN in the lower two.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// Protocol number.
    pub protocol: u8,
    /// Identification.
    pub id: u16,
    /// Fragment offset in units of 8 bytes (low 13 bits) and the flags DF (0x4000), MF (0x2000).
    pub frag_off: u16,
}

impl Ipv4 {
    /// A header as it is mostly made: ToS 0, TTL 64, identification 0, whole and fragmentable.
    pub const fn new(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8) -> Ipv4 {
        Ipv4 { src, dst, tos: 0, ttl: 64, protocol, id: 0, frag_off: 0 }
    }
}

/// The fragment header of IPv6 (RFC 8200 section 4.5): 8 bytes behind the IPv6 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fragment {
    /// Identification: the same in all fragments of a packet.
    pub id: u32,
    /// As on the wire: the place of its first byte in what is fragmented, a multiple of 8 bytes, and bit 0 where more follow.
    pub frag_off: u16,
    /// What the fragmented part begins with.
    pub next_header: u8,
}

impl Fragment {
    /// That of a packet that has none.
    pub const NONE: Fragment = Fragment { id: 0, frag_off: 0, next_header: 0 };
    /// Length of the header, bytes.
    pub const LEN: u32 = 8;
    /// More fragments follow (`IP6_MF`).
    pub const MF: u16 = 1;

    /// Where its first byte stands in what is fragmented, bytes.
    #[inline]
    pub const fn offset(&self) -> u32 {
        (self.frag_off & !7) as u32
    }
    /// Whether more follow.
    #[inline]
    pub const fn more(&self) -> bool {
        self.frag_off & Fragment::MF != 0
    }
}

/// An IPv6 header (RFC 8200), and a fragment header where there is one; no other extension headers. The payload's length follows from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6 {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Next header, as on the wire: [`ipproto::FRAGMENT`] where a fragment header follows.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// The fragment header, which is there where [`Ipv6::next_header`] says so.
    pub fragment: Fragment,
}

impl Ipv6 {
    /// A header as it is mostly made: class and label 0, hop limit 64, no fragment.
    pub const fn new(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8) -> Ipv6 {
        let fragment = Fragment::NONE;
        Ipv6 { src, dst, traffic_class: 0, flow_label: 0, next_header, hop_limit: 64, fragment }
    }
    /// The fragment header, where there is one.
    #[inline]
    pub const fn fragment(&self) -> Option<&Fragment> {
        if self.next_header == ipproto::FRAGMENT { Some(&self.fragment) } else { None }
    }
    /// The protocol behind the fragment header, or that which the header names.
    #[inline]
    pub const fn protocol(&self) -> u8 {
        if self.next_header == ipproto::FRAGMENT { self.fragment.next_header } else { self.next_header }
    }
    /// Whether it is a fragment but the first: it has no transport header.
    #[inline]
    pub const fn is_later_fragment(&self) -> bool {
        self.next_header == ipproto::FRAGMENT && self.fragment.offset() != 0
    }
    /// Length of the header with that of a fragment, bytes.
    #[inline]
    pub const fn header_len(&self) -> u32 {
        if self.next_header == ipproto::FRAGMENT { 40 + Fragment::LEN } else { 40 }
    }
}

/// An ARP packet for IPv4 over Ethernet (RFC 826): 28 bytes, 42 with the Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arp {
    /// 1 request, 2 reply.
    pub op: u16,
    /// Sender's hardware address.
    pub sha: [u8; 6],
    /// Sender's protocol address.
    pub spa: Ipv4Addr,
    /// Target's hardware address.
    pub tha: [u8; 6],
    /// Target's protocol address.
    pub tpa: Ipv4Addr,
}

/// The transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum L4 {
    /// RFC 9293.
    Tcp(Tcp),
    /// RFC 768.
    Udp(Udp),
    /// RFC 792, RFC 4443.
    Icmp(Icmp),
    /// None, or one that is not read (fragments but the first, other protocols).
    None,
}

/// A UDP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Udp {
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

/// An ICMP header, of version 4 or 6 as the network header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Icmp {
    /// Type. Of ICMP: 0 echo reply, 3 unreachable, 8 echo request, 11 time exceeded. Of ICMPv6: 1 unreachable, 2 packet too big, 3 time exceeded,
    /// 128 echo request, 129 echo reply, 133 router solicitation, 134 router advertisement, 135 neighbour solicitation, 136 neighbour advertisement.
    pub ty: u8,
    /// Code.
    pub code: u8,
    /// Identifier of an echo; 0 in errors. Upper half of the MTU in "packet too big", of the flags in a neighbour advertisement; hop limit and flags in
    /// a router's.
    pub id: u16,
    /// Sequence number of an echo. In "fragmentation needed" the next hop's MTU, in "packet too big" its lower half, in a router's advertisement its
    /// lifetime, seconds.
    pub seq: u16,
    /// What stands behind these 8 bytes.
    pub body: IcmpBody,
}

/// What an ICMP message holds behind its first 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpBody {
    /// Data of an echo, a router's message ([`Rare::message`](crate::Rare::message)), or what is not read.
    Data,
    /// In errors: the packet spoken of.
    About(Quoted),
    /// In neighbour discovery (RFC 4861): the address that is asked for or told of.
    Neighbour {
        /// The target address.
        target: Ipv6Addr,
        /// Source or target link-layer address, where the option is there.
        mac: Option<[u8; 6]>,
    },
}

impl Icmp {
    /// A message with these first four fields and data.
    pub const fn new(ty: u8, code: u8, id: u16, seq: u16) -> Icmp {
        Icmp { ty, code, id, seq, body: IcmpBody::Data }
    }
    /// In errors: the packet spoken of.
    #[inline]
    pub fn about(&self) -> Option<&Quoted> {
        match &self.body {
            IcmpBody::About(quoted) => Some(quoted),
            _ => None,
        }
    }
    /// The same, to be changed.
    #[inline]
    pub fn about_mut(&mut self) -> Option<&mut Quoted> {
        match &mut self.body {
            IcmpBody::About(quoted) => Some(quoted),
            _ => None,
        }
    }
    /// The second four bytes as one number: the MTU of "packet too big", the flags of a neighbour advertisement.
    #[inline]
    pub fn info(&self) -> u32 {
        u32::from(self.id) << 16 | u32::from(self.seq)
    }
}

/// What an ICMP error quotes of the packet it speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Protocol number; of a fragment of IPv6 that behind the fragment header.
    pub protocol: u8,
    /// Its fragment header, of IPv6.
    pub fragment: Option<Fragment>,
    /// Source port, or identifier of an echo.
    pub sport: u16,
    /// Destination port, or sequence number of an echo.
    pub dport: u16,
}

/// TCP flag bits: the header's byte 13, and AE of the byte before as bit 8.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// FIN.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// SYN.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// RST.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// PSH.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// ACK.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// URG.
    pub const URG: TcpFlags = TcpFlags(0x20);
    /// ECE (RFC 3168).
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// CWR (RFC 3168).
    pub const CWR: TcpFlags = TcpFlags(0x80);
    /// AE (RFC 9768).
    pub const AE: TcpFlags = TcpFlags(0x100);

    /// Flags whose ACE field, which is AE, CWR and ECE, says `ace` modulo 8 (RFC 9768 section 3.1.1).
    pub const fn of_ace(ace: u32) -> TcpFlags {
        TcpFlags((ace as u16 & 7) << 6)
    }
    /// The ACE field, 0..=7.
    pub const fn ace(self) -> u32 {
        (self.0 >> 6 & 7) as u32
    }
    /// All but these.
    pub const fn without(self, flags: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 & !flags.0)
    }
    /// The header's byte 13: without AE.
    pub const fn byte(self) -> u8 {
        self.0 as u8
    }
    /// Whether all of `flags` are set.
    pub const fn has(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
    /// These and those.
    pub const fn with(self, flags: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | flags.0)
    }
}

/// The Accurate ECN option: bytes of payload that came with each mark, modulo 2^24 (RFC 9768 section 3.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccEcn {
    /// Kind 174, whose counters are of ECT(1), CE and ECT(0); else 172: ECT(0), CE, ECT(1).
    pub order1: bool,
    /// How many of the counters it has, 0..=3.
    pub fields: u8,
    /// The counters, high byte first; the first `fields` count.
    pub counters: [[u8; 3]; 3],
}

impl AccEcn {
    /// One with so many of these counters.
    pub fn new(order1: bool, fields: u8, counters: [u32; 3]) -> AccEcn {
        let fields = fields.min(3);
        let mut option = AccEcn { order1, fields, ..AccEcn::default() };
        for (to, c) in option.counters.iter_mut().zip(counters).take(fields.into()) {
            *to = [(c >> 16) as u8, (c >> 8) as u8, c as u8];
        }
        option
    }
    /// Counter number `n`, where it has one.
    pub fn counter(&self, n: usize) -> Option<u32> {
        let bytes = self.counters.get(n).filter(|_| n < usize::from(self.fields))?;
        Some(bytes.iter().fold(0, |sum, &b| sum << 8 | u32::from(b)))
    }
    /// Its length without padding, bytes.
    pub fn len(&self) -> u32 {
        2 + 3 * u32::from(self.fields)
    }
    /// Whether it has no counter.
    pub fn is_empty(&self) -> bool {
        self.fields == 0
    }
}

/// A TCP header with the options that are modelled (RFC 9293, 7323, 2018, 9768).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)] // What every segment has stands first.
pub struct Tcp {
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Window as it stands in the header (before scaling).
    pub window: u16,
    /// Flags.
    pub flags: TcpFlags,
    /// How many SACK blocks there are, 0..=4.
    pub sack_count: u8,
    /// Timestamps option: TSval, TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Maximum segment size option (SYN only).
    pub mss: Option<u16>,
    /// Window scale option (SYN only).
    pub wscale: Option<u8>,
    /// SACK permitted option (SYN only).
    pub sack_permitted: bool,
    /// SACK blocks, left and right edge; the first `sack_count` count.
    pub sack: [(u32, u32); 4],
    /// Accurate ECN option.
    pub accecn: Option<AccEcn>,
    /// Fast Open option (SYN only), set with [`Tcp::set_fast_open`]; its cookie stands where a segment that is open has SACK blocks. 0: none, else the cookie's length and 1; 32 more: as experiment.
    pub fast_open: u8,
}

/// The option of TCP Fast Open: a cookie, or without one the request for it (RFC 7413 section 4.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FastOpen {
    cookie: [u8; 16],
    len: u8,
    /// Kind 254 with the number 0xf989, as before the option had a kind of its own.
    pub exp: bool,
}

impl FastOpen {
    /// The request for a cookie.
    pub const fn request(exp: bool) -> FastOpen {
        FastOpen { cookie: [0; 16], len: 0, exp }
    }
    /// A cookie; `None` where that is none: it has 4 to 16 bytes, an even number, or 0 for a request.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_parse_fastopen_option
    pub fn new(cookie: &[u8], exp: bool) -> Option<FastOpen> {
        let len = cookie.len();
        if len != 0 && !(4..=16).contains(&len) || !len.is_multiple_of(2) {
            return None;
        }
        let mut option = FastOpen { len: len as u8, exp, ..FastOpen::default() };
        option.cookie[..len].copy_from_slice(cookie);
        Some(option)
    }
    /// The cookie; of a request nothing.
    pub fn cookie(&self) -> &[u8] {
        &self.cookie[..usize::from(self.len)]
    }
    /// Its length in a header with what pads it, bytes.
    pub const fn padded_len(&self) -> u32 {
        let head = if self.exp { 4 } else { 2 };
        (head + self.len as u32).next_multiple_of(4)
    }
}

impl Tcp {
    /// The Fast Open option.
    pub fn fast_open(&self) -> Option<FastOpen> {
        let len = (self.fast_open & 31).checked_sub(1)?;
        let mut option = FastOpen { len, exp: self.fast_open & 32 != 0, ..FastOpen::default() };
        for (to, word) in option.cookie.chunks_exact_mut(4).zip([
            self.sack[0].0,
            self.sack[0].1,
            self.sack[1].0,
            self.sack[1].1,
        ]) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        Some(option)
    }
    /// Gives a SYN, which has no SACK blocks, this option.
    pub fn set_fast_open(&mut self, option: Option<FastOpen>) {
        debug_assert!(self.sack_count == 0);
        self.fast_open = option.map_or(0, |o| (o.len + 1) | if o.exp { 32 } else { 0 });
        let cookie = option.map_or([0; 16], |o| o.cookie);
        let word = |n: usize| u32::from_be_bytes([cookie[n], cookie[n + 1], cookie[n + 2], cookie[n + 3]]);
        (self.sack[0], self.sack[1]) = ((word(0), word(4)), (word(8), word(12)));
    }
    /// Length of the options as Linux lays them out, padded to 4 bytes.
    /// SYN: MSS 4, SACK-permitted with timestamps 12 (4 alone), window scale 4; else timestamps 12, SACK 4 + 8 a block. Accurate ECN 12 or 8; with one
    /// counter or none, what is more than a multiple of 4 stands where the option behind has its padding.
    pub fn options_len(&self) -> u32 {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        match (self.sack_permitted, self.timestamps.is_some()) {
            (_, true) => len += 12,
            (true, false) => len += 4,
            (false, false) => {}
        }
        if self.wscale.is_some() {
            len += 4;
        }
        if self.sack_count > 0 {
            len += 4 + 8 * u32::from(self.sack_count);
        }
        if let Some(accecn) = &self.accecn {
            let pads = self.sack_count > 0 || self.sack_permitted && self.timestamps.is_none();
            len += match accecn.fields {
                0 if pads => 0,
                1 if pads || self.wscale.is_some() => 4,
                _ => accecn.len().next_multiple_of(4),
            };
        }
        if self.fast_open != 0 {
            let head = if self.fast_open & 32 != 0 { 4 } else { 2 };
            len += (head + u32::from(self.fast_open & 31) - 1).next_multiple_of(4);
        }
        len
    }
    /// Length of the header with its options, bytes.
    pub fn header_len(&self) -> u32 {
        20 + self.options_len()
    }
    /// The SACK blocks.
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_count.min(4))]
    }
}
