//! Extended matches: a tree of small tests, joined by and, or and not.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/ematch.c`, `em_cmp.c`, `em_nbyte.c`, `em_u32.c`, `em_meta.c`, `em_canid.c`, `em_ipt.c`.
//! Differs: of what `meta` knows, [`KNOWN`] is looked at; filters with the others (load, sockets, routes, names of devices, the hash), or with
//! `ipt`, are not simulated. Payload reads as 0. `u32` with `nexthdr+` adds nothing, as there is no header before this match to have left an
//! offset.

use penstock_model::{Kernel, KernelError, Options, Rng, Value};
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::skb::HEADER_MAX;
use penstock_packet::{L3, Skb};

const CONTAINER: u32 = 0;
const CMP: u32 = 1;
const NBYTE: u32 = 2;
const U32: u32 = 3;
const META: u32 = 4;
const CANID: u32 = 7;
const IPT: u32 = 9;

const AND: u32 = 1;
const OR: u32 = 2;
const INVERT: u32 = 4;
/// Most containers within one another (`CONFIG_NET_EMATCH_STACK`).
const DEPTH_MAX: usize = 32;

/// What `meta` knows here: a value, `random`, `dev` as a number, `priority`, `protocol`, `pkt_type`, `pkt_len`, `data_len`, `mac_len`, `nf_mark`,
/// `tc_index`, `vlan`.
const KNOWN: [u32; 12] = [0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 46];

/// A side of `meta`.
#[derive(Clone, Debug, Default)]
struct Meta {
    id: u32,
    shift: u32,
    /// The value, or the mask of what is looked up; 0: none.
    value: u32,
    bytes: Vec<u8>,
}

/// `struct tcf_ematch`.
#[derive(Clone, Debug)]
enum Test {
    Container(usize),
    Cmp {
        align: u32,
        layer: u32,
        off: u32,
        mask: u32,
        opnd: u32,
        val: u32,
    },
    Nbyte {
        layer: u32,
        off: u32,
        needle: Vec<u8>,
    },
    U32 {
        off: i64,
        val: u32,
        mask: u32,
    },
    Meta {
        text: bool,
        opnd: u32,
        left: Meta,
        right: Meta,
    },
    /// Identifiers of CAN with their masks. No frame here is of CAN: what stands first in it is read as one.
    Canid(Vec<(u32, u32)>),
    /// What no packet here can be compared with.
    Other,
}

/// `struct tcf_ematch_tree`.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    tests: Vec<(Test, u32)>,
    list: Vec<Options>,
}

fn refused<T>(errno: i32) -> Result<T, KernelError> {
    Err(KernelError::errno(errno))
}

impl Tree {
    /// `tcf_em_tree_validate`.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn new(list: &[Options], kernel: Kernel) -> Result<Tree, KernelError> {
        let mut tests = Vec::new();
        let mut kept = Vec::new();
        for (i, o) in list.iter().enumerate() {
            let flags = o.u32("flags").unwrap_or(0);
            if flags & (AND | OR) == AND | OR {
                return refused(KernelError::EINVAL);
            }
            let mut entry = o.clone();
            let n = |name| o.u32(name).unwrap_or(0);
            let test = match n("kind") {
                CONTAINER => {
                    let at = n("ref") as usize;
                    if at >= list.len() || at <= i {
                        return refused(KernelError::EINVAL);
                    }
                    Test::Container(at)
                }
                CMP => Test::Cmp {
                    align: n("align"),
                    layer: n("layer"),
                    off: n("off"),
                    mask: n("mask"),
                    opnd: n("opnd"),
                    val: n("val"),
                },
                NBYTE => Test::Nbyte {
                    layer: n("layer"),
                    off: n("off"),
                    needle: o.bytes("needle").unwrap_or_default().to_vec(),
                },
                U32 => Test::U32 { off: o.i64("off").unwrap_or(0), val: n("val"), mask: n("mask") },
                META => meta(o)?,
                CANID if kernel >= Kernel::V6_12 => {
                    let rules = o.list("rules");
                    if rules.is_empty() {
                        return refused(KernelError::EINVAL);
                    }
                    // The long identifiers come first.
                    let long = |rule: &&Options| rule.u32("id").unwrap_or(0) & 0x8000_0000 != 0;
                    let (first, last): (Vec<_>, Vec<_>) = rules.iter().partition(long);
                    let sorted = first.into_iter().chain(last).cloned().collect();
                    let rule = |o: &Options| (o.u32("id").unwrap_or(0), o.u32("mask").unwrap_or(0));
                    let all = rules.iter().map(rule).collect();
                    entry.set("rules", Value::List(sorted));
                    Test::Canid(all)
                }
                IPT if kernel >= Kernel::V6_12 => {
                    if !matches!(o.str("match"), Some("policy" | "addrtype")) {
                        return refused(KernelError::EINVAL);
                    }
                    Test::Other
                }
                _ => return refused(KernelError::ENOENT),
            };
            tests.push((test, flags));
            kept.push(entry);
        }
        Ok(Tree { tests, list: kept })
    }
    /// Adds the matches to a dump.
    pub fn dump(&self, options: &mut Options) {
        if !self.list.is_empty() {
            options.set("ematches", Value::List(self.list.clone()));
        }
    }
    /// Whether every test is made as the kernel makes it.
    pub fn is_exact(&self) -> bool {
        let known = |m: &Meta| KNOWN.contains(&m.id);
        self.tests.iter().all(|(test, _)| match test {
            Test::Other => false,
            Test::Meta { text: true, left, right, .. } => left.id == 0 && right.id == 0,
            Test::Meta { left, right, .. } => known(left) && known(right),
            _ => true,
        })
    }
    /// `tcf_em_tree_match`: no tests at all always match.
    pub fn matches(&self, skb: &Skb, rng: &mut Rng) -> bool {
        if self.tests.is_empty() {
            return true;
        }
        let mut bytes = [0; HEADER_MAX];
        let len = skb.header_bytes(&mut bytes);
        let view = View { skb, bytes: &bytes[..len] };
        let mut stack = Vec::new();
        let (mut at, mut result) = (0, false);
        loop {
            while let Some((test, flags)) = self.tests.get(at) {
                if let Test::Container(first) = test {
                    if stack.len() >= DEPTH_MAX {
                        return false;
                    }
                    stack.push(at);
                    at = *first;
                    continue;
                }
                result = view.holds(test, rng) != (flags & INVERT != 0);
                if ends(*flags, result) {
                    break;
                }
                at += 1;
            }
            loop {
                let Some(container) = stack.pop() else { return result };
                let flags = self.tests[container].1;
                result ^= flags & INVERT != 0;
                if !ends(flags, result) {
                    at = container + 1;
                    break;
                }
            }
        }
    }
}

/// `tcf_em_early_end`.
fn ends(flags: u32, result: bool) -> bool {
    match flags & (AND | OR) {
        AND => !result,
        OR => result,
        _ => true,
    }
}

/// `em_meta_change`.
fn meta(o: &Options) -> Result<Test, KernelError> {
    let empty = Options::new();
    let (left, right) = (o.nested("left").unwrap_or(&empty), o.nested("right").unwrap_or(&empty));
    let n = |o: &Options, name| o.u32(name).unwrap_or(0);
    let text = n(left, "type") == 0;
    if n(left, "type") != n(right, "type") {
        return refused(KernelError::EINVAL);
    }
    for side in [left, right] {
        let id = n(side, "id");
        if id != 0 && text && id != 5 && id != 19 {
            return refused(KernelError::EOPNOTSUPP);
        }
        if side.bytes("value").is_some_and(<[u8]>::is_empty) {
            return refused(KernelError::EINVAL);
        }
    }
    let side = |o: &Options| Meta {
        id: n(o, "id"),
        shift: n(o, "shift"),
        value: n(o, "value"),
        bytes: o.bytes("value").unwrap_or_default().to_vec(),
    };
    Ok(Test::Meta { text, opnd: n(o, "opnd"), left: side(left), right: side(right) })
}

/// IPv4, IPv6 and GRE within IP: what is inside is not known here, and where that cannot be read, nobody sets where the transport header is
/// (`skb_probe_transport_header`).
const TUNNELS: [u8; 3] = [4, 41, 47];

/// A packet with its headers written out.
struct View<'a> {
    skb: &'a Skb,
    bytes: &'a [u8],
}

impl View<'_> {
    /// `tcf_get_base_ptr`: where a layer begins.
    fn base(&self, layer: u32) -> Option<i64> {
        let network = i64::from(ETH_HLEN);
        //= linux v6.12 net/core/dev.c __netif_receive_skb_core: where nobody has set the transport header it is put to the network header.
        let received = self.skb.tc.at_ingress.then_some(network);
        match layer {
            0 => Some(0),
            1 => Some(network),
            2 => Some(
                network
                    + 4 * self.skb.tags_in_frame() as i64
                    + match self.skb.innermost().0 {
                        L3::Ipv4(h) if TUNNELS.contains(&h.protocol) => return received,
                        L3::Ipv6(h) if TUNNELS.contains(&h.next_header) => return received,
                        L3::Ipv4(_) => 20,
                        L3::Ipv6(_) => 40,
                        _ => 0,
                    },
            ),
            _ => None,
        }
    }
    /// `len` bytes; payload reads as 0. `None` where the packet is too short.
    fn read(&self, at: i64, len: usize) -> Option<Vec<u8>> {
        if at < 0 || at + len as i64 > i64::from(self.skb.len) {
            return None;
        }
        Some((at as usize..at as usize + len).map(|i| self.bytes.get(i).copied().unwrap_or(0)).collect())
    }
    fn holds(&self, test: &Test, rng: &mut Rng) -> bool {
        match test {
            Test::Cmp { align, layer, off, mask, opnd, val } => {
                let bytes = self.base(*layer).and_then(|b| self.read(b + i64::from(*off), *align as usize));
                let Some(bytes) = bytes.filter(|b| !b.is_empty()) else { return false };
                let word = bytes.iter().fold(0u32, |word, b| word << 8 | u32::from(*b));
                compare(if *mask != 0 { word & mask } else { word }, *val, *opnd)
            }
            Test::Nbyte { layer, off, needle } => {
                let bytes = self.base(*layer).and_then(|b| self.read(b + i64::from(*off), needle.len()));
                bytes.is_some_and(|bytes| bytes == *needle)
            }
            Test::U32 { off, val, mask } => {
                let bytes = self.read(i64::from(ETH_HLEN) + off, 4);
                bytes.is_some_and(|b| (u32::from_be_bytes([b[0], b[1], b[2], b[3]]) ^ val) & mask == 0)
            }
            Test::Meta { text: true, opnd, left, right } => {
                // Names of devices are not known here; strings are compared by length, then by bytes.
                let by_len = left.bytes.len().cmp(&right.bytes.len());
                let order = by_len.then_with(|| left.bytes.cmp(&right.bytes)) as i32;
                left.id == 0 && right.id == 0 && compare((order + 1) as u32, 1, *opnd)
            }
            Test::Meta { opnd, left, right, .. } => {
                let Some(left) = self.meta(left, rng) else { return false };
                self.meta(right, rng).is_some_and(|right| compare(left, right, *opnd))
            }
            Test::Canid(rules) => {
                let at = if self.skb.tc.at_ingress { i64::from(ETH_HLEN) } else { 0 };
                let bytes = self.read(at, 4).unwrap_or_default();
                <[u8; 4]>::try_from(bytes).is_ok_and(|b| can_fits(u32::from_le_bytes(b), rules))
            }
            Test::Container(_) | Test::Other => false,
        }
    }
    /// `meta_get`: what the packet has not, fits nothing.
    fn meta(&self, m: &Meta, rng: &mut Rng) -> Option<u64> {
        let skb = self.skb;
        let value = match m.id {
            0 => return Some(m.value.into()),
            1 => rng.next_u64(),
            5 => skb.tc.dev.into(),
            6 => skb.priority.into(),
            // In network order, on a little-endian machine.
            7 => skb.protocol().swap_bytes().into(),
            8 => skb.rare().ptype.unwrap_or_else(|| self.arrived_as()).into(),
            9 => skb.len.into(),
            10 => 0,
            11 => ETH_HLEN.into(),
            12 => skb.mark.into(),
            13 => skb.tc.index.into(),
            46 => {
                let inside = || skb.rare().within.as_ref().map(|tag| tag.tci);
                skb.rare().vlan.map(|(_, tci)| tci).or_else(inside)?.into()
            }
            _ => return None,
        };
        let value = if m.shift != 0 { value.checked_shr(m.shift).unwrap_or(0) } else { value };
        Some(if m.value != 0 { value & u64::from(m.value) } else { value })
    }
    /// `skb->pkt_type` of a packet that nobody has given another one: of one that arrives by its destination address (`eth_type_trans`).
    fn arrived_as(&self) -> u8 {
        match self.skb.eth.1 {
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] if self.skb.tc.at_ingress => 1,
            [first, ..] if self.skb.tc.at_ingress && first & 1 != 0 => 2,
            _ => 0,
        }
    }
}

/// `em_canid_match`: an extended identifier by the rules for those, another by the rest.
fn can_fits(id: u32, rules: &[(u32, u32)]) -> bool {
    const EFF: u32 = 0x8000_0000;
    const SFF_MASK: u32 = 0x7ff;
    let mut rules = rules.iter().filter(|(rule, _)| rule & EFF == id & EFF);
    rules.any(|&(rule, mask)| match id & EFF {
        0 => (rule ^ id) & mask & SFF_MASK == 0,
        _ => (rule ^ id) & mask == 0,
    })
}

/// `TCF_EM_OPND_EQ`, `_GT`, `_LT`.
fn compare<T: Ord>(left: T, right: T, opnd: u32) -> bool {
    match opnd {
        0 => left == right,
        1 => left > right,
        2 => left < right,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;

    fn protocol(val: u32, flags: u32) -> Options {
        Options::new()
            .with("kind", CMP)
            .with("flags", flags)
            .with("align", 1u32)
            .with("layer", 1u32)
            .with("off", 9u32)
            .with("val", val)
    }
    fn container(at: u32, flags: u32) -> Options {
        Options::new().with("kind", CONTAINER).with("flags", flags).with("ref", at)
    }
    fn on(list: &[Options], skb: &Skb) -> bool {
        Tree::new(list, Kernel::V6_12).unwrap().matches(skb, &mut Rng::named(1, "em"))
    }
    fn matches(list: &[Options]) -> bool {
        on(list, &packet(0, 100))
    }

    #[test]
    fn trees_are_walked_with_early_ends() {
        // The packet is UDP: 17.
        assert!(matches(&[]));
        assert!(matches(&[protocol(17, 0)]));
        assert!(matches(&[protocol(6, INVERT)]));
        assert!(!matches(&[protocol(17, AND), protocol(6, 0)]));
        assert!(matches(&[protocol(6, OR), protocol(17, 0)]));
        // not (6 or 17) is false, not (6 and 17) is true.
        assert!(!matches(&[container(1, INVERT), protocol(6, OR), protocol(17, 0)]));
        assert!(matches(&[container(1, INVERT), protocol(6, AND), protocol(17, 0)]));
        // (6 and 17) or 17.
        assert!(matches(&[container(2, OR), protocol(17, 0), protocol(6, AND), protocol(17, 0)]));
        let errno = |list: &[Options]| Tree::new(list, Kernel::V6_12).map(|_| ()).map_err(|e| e.errno);
        assert_eq!(errno(&[container(0, 0)]), Err(KernelError::EINVAL));
        assert_eq!(errno(&[Options::new().with("kind", 99u32)]), Err(KernelError::ENOENT));
    }

    #[test]
    fn bytes_words_and_metadata() {
        let u32 = |off: i64, val: u32| {
            Options::new().with("kind", U32).with("off", off).with("val", val).with("mask", u32::MAX)
        };
        assert!(matches(&[u32(12, 0x0a00_0001)]));
        assert!(!matches(&[u32(12, 0x0a00_0002)]));
        assert!(!matches(&[u32(96, 0)]));
        let nbyte = Options::new().with("kind", NBYTE).with("layer", 2u32).with("off", 2u32);
        assert!(matches(&[nbyte.with("needle", vec![7u8, 208])]));
        // GRE of which nobody knows where it begins: with the IP header where it is just being received.
        let mut gre = packet(0, 100);
        if let L3::Ipv4(header) = &mut gre.l3 {
            header.protocol = 47;
        }
        gre.l4 = penstock_packet::L4::None;
        let total = Options::new().with("kind", NBYTE).with("layer", 2u32).with("off", 2u32);
        let total = total.with("needle", vec![0u8, 86]);
        assert!(!on(std::slice::from_ref(&total), &gre));
        gre.tc.at_ingress = true;
        assert!(on(&[total], &gre));
        let meta = |id: u32, opnd: u32, value: u32| {
            let side =
                |id: u32, value: u32| Options::new().with("id", id).with("type", 1u32).with("value", value);
            Options::new()
                .with("kind", META)
                .with("opnd", opnd)
                .with("left", side(id, 0))
                .with("right", side(0, value))
        };
        assert!(matches(&[meta(9, 0, 100)]));
        assert!(matches(&[meta(9, 1, 99)]));
        assert!(matches(&[meta(7, 0, 8)]));
        // The hash.
        assert!(!Tree::new(&[meta(47, 0, 8)], Kernel::V6_12).unwrap().is_exact());
        let mut skb = packet(0, 100);
        // Without a tag there is nothing to compare, not even 0.
        assert!(!on(&[meta(46, 0, 0)], &skb));
        skb.rare_mut().vlan = Some((0x8100, 0x2005));
        (skb.tc.index, skb.tc.dev) = (7, 3);
        assert!(
            on(&[meta(46, 0, 0x2005)], &skb) && on(&[meta(13, 0, 7)], &skb) && on(&[meta(5, 0, 3)], &skb)
        );
        skb.eth.1 = [0xff; 6];
        assert!(on(&[meta(8, 0, 0)], &skb));
        skb.tc.at_ingress = true;
        assert!(on(&[meta(8, 0, 1)], &skb));
        skb.rare_mut().ptype = Some(3);
        assert!(on(&[meta(8, 0, 3)], &skb));
        // 64 bits of dice are hardly ever less than 32 are.
        assert!(on(&[meta(1, 1, u32::MAX)], &skb));
    }

    #[test]
    fn identifiers_of_can_are_the_first_bytes() {
        let canid = |rules: &[(u32, u32)]| {
            let rule = |&(id, mask): &(u32, u32)| Options::new().with("id", id).with("mask", mask);
            let list: Vec<Options> = rules.iter().map(rule).collect();
            [Options::new().with("kind", CANID).with("rules", list)]
        };
        let mut skb = packet(0, 100);
        skb.eth.1 = [0x23, 0x01, 0, 0, 0, 0];
        assert!(on(&canid(&[(0x123, 0x7ff)]), &skb) && on(&canid(&[(0x103, 0x70f)]), &skb));
        assert!(!on(&canid(&[(0x124, 0x7ff), (0x8000_0123, 0xffff_ffff)]), &skb));
        skb.eth.1 = [0x23, 0x01, 0, 0x80, 0, 0];
        assert!(on(&canid(&[(0x8000_0123, 0x9fff_ffff)]), &skb));
        assert!(!on(&canid(&[(0x123, 0x7ff)]), &skb));
    }
}
