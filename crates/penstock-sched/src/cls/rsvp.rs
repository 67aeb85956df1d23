//! `rsvp` and `rsvp6`: sessions of the Resource Reservation Protocol.
//!
//! Follows: linux v2.6.35 `net/sched/cls_rsvp.h`; gone from Linux since 6.3, it is kept under 6.12 for scripts that name it.
//! Differs: a filter into a tunnel (`tunnel … skip …`) and `rsvp6` are not simulated: no packet of ours has a second header, nor IPv6. What a
//! filter reads behind the headers is 0. 2.6.35 itself looked for its options one place off and refused
//! every filter with EINVAL; here it works, as in the kernels before and after.

use super::{Answer, Change, Classifier, ClsSpec, Exts, Shared, Target};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options};
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::skb::HEADER_MAX;
use penstock_packet::{L3, L4, Skb};
use std::collections::BTreeMap;

/// `rsvp`: IPv4.
pub static RSVP: ClsSpec = ClsSpec {
    id: "rsvp",
    about: "sessions of the Resource Reservation Protocol",
    kernels: &Kernel::BEFORE_7,
    simulated: true,
    build: |_, kernel, _| Box::new(Rsvp::new("rsvp", kernel)),
};

/// `rsvp6`: IPv6.
pub static RSVP6: ClsSpec = ClsSpec {
    id: "rsvp6",
    about: "sessions of the Resource Reservation Protocol, IPv6",
    kernels: &Kernel::BEFORE_7,
    simulated: false,
    build: |_, kernel, _| Box::new(Rsvp::new("rsvp6", kernel)),
};

/// Bucket of filters that name no sender.
const WILD: u32 = 16;

/// A priority of sessions.
struct Rsvp {
    id: &'static str,
    kernel: Kernel,
    /// By the bucket of their destination.
    sessions: BTreeMap<u32, Vec<Session>>,
    generated: u32,
    /// The last tunnel given, and which are.
    tunnel: u8,
    tunnels: Vec<bool>,
}

struct Session {
    dst: Vec<u8>,
    dpi: Options,
    /// The same, read.
    mark: Mark,
    protocol: u32,
    tunnelid: u32,
    /// By the bucket of their sender.
    filters: BTreeMap<u32, Vec<Filter>>,
}

struct Filter {
    handle: u32,
    src: Vec<u8>,
    spi: Options,
    /// The same, read.
    mark: Mark,
    tunnelhdr: u32,
    target: Target,
    exts: Exts,
}

/// `struct tc_rsvp_gpi`: a word of the packet, counted from its transport header, and what it must be under a mask.
#[derive(Clone, Copy)]
struct Mark {
    key: u32,
    mask: u32,
    offset: i32,
}

impl Mark {
    fn of(gpi: &Options) -> Mark {
        let offset = gpi.i64("offset").unwrap_or(0) as i32;
        Mark { key: gpi.u32("key").unwrap_or(0), mask: mask(gpi), offset }
    }
    fn fits(self, skb: &Skb) -> bool {
        self.mask == 0 || self.mask & (self.word(skb) ^ self.key) == 0
    }
    fn word(self, skb: &Skb) -> u32 {
        let two = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        match (self.offset, &skb.l4) {
            (0, L4::Tcp(t)) => two(t.sport, t.dport),
            (0, L4::Udp(u)) => two(u.sport, u.dport),
            _ => {
                let mut bytes = [0; HEADER_MAX];
                let len = skb.header_bytes(&mut bytes) as i32;
                let from = (ETH_HLEN + 20) as i32 + self.offset;
                let byte = |i: i32| if (0..len).contains(&i) { u32::from(bytes[i as usize]) } else { 0 };
                (from..from + 4).fold(0, |word, i| word << 8 | byte(i))
            }
        }
    }
}

fn last_word(address: &[u8]) -> u32 {
    let tail = &address[address.len().saturating_sub(4)..];
    tail.iter().rev().fold(0, |word, b| word << 8 | u32::from(*b))
}

/// `hash_dst`.
fn hash_dst(dst: &[u8], protocol: u32, tunnelid: u32) -> u32 {
    let mut h = last_word(dst);
    h ^= h >> 16;
    h ^= h >> 8;
    (h ^ protocol ^ tunnelid) & 0xff
}

/// `hash_src`.
fn hash_src(src: &[u8]) -> u32 {
    let mut h = last_word(src);
    h ^= h >> 16;
    h ^= h >> 8;
    h ^= h >> 4;
    h & 0xf
}

/// Where a filter with this mask belongs: before the first whose mask holds less.
fn before(masks: impl Iterator<Item = u32>, mask: u32) -> usize {
    let mut at = 0;
    for other in masks {
        if other & mask != mask {
            break;
        }
        at += 1;
    }
    at
}

fn mask(gpi: &Options) -> u32 {
    gpi.u32("mask").unwrap_or(0)
}

impl Rsvp {
    fn new(id: &'static str, kernel: Kernel) -> Rsvp {
        let tunnels = vec![false; 256];
        Rsvp { id, kernel, sessions: BTreeMap::new(), generated: 0, tunnel: 0, tunnels }
    }
    fn filters(&self) -> impl Iterator<Item = (&Session, &Filter)> {
        self.sessions.values().flatten().flat_map(|s| s.filters.values().flatten().map(move |f| (s, f)))
    }
    fn filters_mut(&mut self) -> impl Iterator<Item = &mut Filter> {
        self.sessions.values_mut().flatten().flat_map(|s| s.filters.values_mut().flatten())
    }
    fn find(&self, handle: u32) -> Option<&Filter> {
        let sessions = self.sessions.get(&(handle & 0xff))?;
        let here = |s: &Session| s.filters.contains_key(&(handle >> 8 & 0xff));
        let lists = sessions.iter().filter(|s| here(s)).filter_map(|s| s.filters.get(&(handle >> 8 & 0xff)));
        lists.flatten().find(|f| f.handle == handle)
    }
    /// `gen_handle`.
    fn new_handle(&mut self, salt: u32) -> Result<u32, KernelError> {
        for _ in 0..0xffff {
            self.generated = self.generated.wrapping_add(0x1_0000);
            if self.generated == 0 {
                self.generated = 0x1_0000;
            }
            let handle = self.generated | salt;
            if self.find(handle).is_none() {
                return Ok(handle);
            }
        }
        Err(KernelError::errno(KernelError::ENOMEM))
    }
    /// `gen_tunnel`: the next number of a tunnel that none has.
    fn new_tunnel(&mut self) -> Result<u32, KernelError> {
        for again in [false, true] {
            for _ in 0..255 {
                self.tunnel = self.tunnel.checked_add(1).unwrap_or(1);
                if !std::mem::replace(&mut self.tunnels[usize::from(self.tunnel)], true) {
                    return Ok(u32::from(self.tunnel));
                }
            }
            if again {
                break;
            }
            let mut used = vec![false; 256];
            for (_, f) in self.filters().filter(|(_, f)| f.tunnelhdr != 0) {
                used[f.target.0.classid.0 as usize & 0xff] = true;
            }
            self.tunnels = used;
        }
        Err(KernelError::errno(KernelError::ENOMEM))
    }
}

impl Classifier for Rsvp {
    fn kind(&self) -> &'static str {
        self.id
    }
    //= linux v2.6.35 net/sched/cls_rsvp.h rsvp_classify
    fn classify(&self, _: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        let L3::Ipv4(ip) = &skb.l3 else { return None };
        // A fragment: more follow, or it is not the first.
        if ip.frag_off & 0x3fff != 0 {
            return None;
        }
        let (dst, src, protocol) = (ip.dst.octets(), ip.src.octets(), u32::from(ip.protocol));
        let sessions = self.sessions.get(&hash_dst(&dst, protocol, 0))?;
        let same =
            |s: &&Session| s.dst == dst && s.protocol == protocol && s.tunnelid == 0 && s.mark.fits(skb);
        let session = sessions.iter().find(same)?;
        let list = |bucket: u32| session.filters.get(&bucket).into_iter().flatten();
        let named = list(hash_src(&src)).filter(|f| f.src == src).map(|f| (f, true));
        for (f, marked) in named.chain(list(WILD).map(|f| (f, false))) {
            if (!marked || f.mark.fits(skb))
                && let Some(answer) = f.exts.exec(f.target.0, skb, cx)
            {
                return Some(answer);
            }
        }
        None
    }
    fn exact(&self) -> bool {
        self.filters().all(|(_, f)| f.tunnelhdr == 0)
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        self.find(handle).is_some()
    }
    fn change(&mut self, _: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let einval = || KernelError::errno(KernelError::EINVAL);
        let handle = change.handle;
        let Some(o) = change.options else {
            return if handle == 0 { Ok(()) } else { Err(einval()) };
        };
        let exts = Exts::validate(o, 0, &mut change)?;
        let classid = o.u32("classid").map(Handle);
        if let Some(f) = self.filters_mut().find(|f| f.handle == handle && handle != 0) {
            if let Some(classid) = classid {
                f.target.bind(change.parent, classid, change.classes);
            }
            if !exts.is_empty() {
                f.exts = exts;
            }
            return Ok(());
        }
        let dst = o.bytes("dst").filter(|_| handle == 0).ok_or_else(einval)?.to_vec();
        let src = o.bytes("src").map(<[u8]>::to_vec);
        let empty = Options::new();
        let given = o.nested("pinfo");
        let pinfo = given.unwrap_or(&empty);
        let n = |name| pinfo.u32(name).unwrap_or(0);
        let gpi = |name| pinfo.nested(name).cloned().unwrap_or_default();
        let (protocol, tunnelid, tunnelhdr) = (n("protocol"), n("tunnelid"), n("tunnelhdr"));
        let (dpi, spi) = (gpi("dpi"), gpi("spi"));
        let h2 = src.as_deref().map_or(WILD, hash_src);
        let h1 = hash_dst(&dst, protocol, tunnelid);
        let handle = self.new_handle(h1 | h2 << 8)?;
        let mut target = Target::default();
        if tunnelhdr != 0 {
            let id = classid.map_or(0, |id| id.0);
            if id > 255 {
                return Err(einval());
            }
            let id = if id == 0 { self.new_tunnel()? } else { id };
            target.0.classid = Handle(id);
        } else if let Some(classid) = classid {
            target.bind(change.parent, classid, change.classes);
        }
        let sessions = self.sessions.entry(h1).or_default();
        let same = |s: &Session| {
            given.is_some()
                && s.dst == dst
                && s.protocol == protocol
                && s.tunnelid == tunnelid
                && s.dpi == dpi
        };
        let at = sessions.iter().position(same).unwrap_or_else(|| {
            let at = before(sessions.iter().map(|s| mask(&s.dpi)), mask(&dpi));
            let mark = Mark::of(&dpi);
            sessions.insert(at, Session { dst, dpi, mark, protocol, tunnelid, filters: BTreeMap::new() });
            at
        });
        let list = sessions[at].filters.entry(h2).or_default();
        let place = before(list.iter().map(|f| mask(&f.spi)), mask(&spi));
        let src = src.unwrap_or_default();
        let mark = Mark::of(&spi);
        list.insert(place, Filter { handle, src, spi, mark, tunnelhdr, target, exts });
        Ok(())
    }
    fn delete(
        &mut self,
        _: &mut Shared,
        handle: u32,
        _: &Device,
        classes: &mut dyn Classful,
    ) -> Result<bool, KernelError> {
        if let Some(sessions) = self.sessions.get_mut(&(handle & 0xff)) {
            for list in sessions.iter_mut().filter_map(|s| s.filters.get_mut(&(handle >> 8 & 0xff))) {
                if let Some(at) = list.iter().position(|f| f.handle == handle) {
                    list.remove(at).target.unbind(classes);
                }
            }
            sessions.iter_mut().for_each(|s| s.filters.retain(|_, list| !list.is_empty()));
            sessions.retain(|s| !s.filters.is_empty());
            if sessions.is_empty() {
                self.sessions.remove(&(handle & 0xff));
            }
        }
        Ok(self.kernel >= Kernel::V6_12 && self.sessions.is_empty())
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        for (s, f) in self.filters() {
            let pinfo = Options::new()
                .with("dpi", s.dpi.clone())
                .with("spi", f.spi.clone())
                .with("protocol", s.protocol)
                .with("tunnelid", s.tunnelid)
                .with("tunnelhdr", f.tunnelhdr);
            let mut o = Options::new().with("dst", s.dst.clone()).with("pinfo", pinfo);
            f.target.dump(&mut o);
            if f.handle >> 8 & 0xff != WILD {
                o.set("src", f.src.clone().into());
            }
            f.exts.dump(&mut o, look);
            visit(f.handle, Some(o));
        }
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.filters().for_each(|(_, f)| visit(&f.exts));
    }
    fn targets(&mut self, _: &mut Shared, visit: &mut dyn FnMut(&mut Target)) {
        self.filters_mut().for_each(|f| visit(&mut f.target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, packet, qdisc};
    use crate::tree::Tree;
    use penstock_model::Time;
    use penstock_packet::headers::{Ipv4, Udp};
    use std::net::Ipv4Addr;

    #[test]
    fn handles_tell_the_buckets() {
        for kernel in Kernel::BEFORE_7 {
            let mut bench = Bench::new();
            let mut tree = Tree::new(device(kernel));
            let mut req = qdisc("add root handle 1: prio");
            req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
            tree.qdisc(&req, &mut bench.cx(0)).unwrap();
            let pinfo = Options::new().with("protocol", 6u32);
            let o = Options::new().with("dst", vec![10u8, 0, 0, 1]).with("pinfo", pinfo);
            let mut add = |words: &str, o: Options| {
                let req = filter(&format!("add prio 1 protocol 800{words}"), "rsvp", Some(o));
                tree.filter(&req, &mut bench.cx(0)).map_err(|e| e.errno)
            };
            assert_eq!(add("", Options::new()), Err(KernelError::EINVAL));
            assert_eq!(add(" handle 5", o.clone()), Err(KernelError::EINVAL));
            assert_eq!(add("", o.clone().with("classid", 0x1_0002u32)), Ok(()));
            assert_eq!(add("", o.with("src", vec![10u8, 0, 0, 2])), Ok(()));
            let dumps = tree.dump_filters(Handle::UNSPEC, bench.look()).unwrap();
            let handles: Vec<u32> = dumps.iter().map(|d| d.handle).collect();
            // 10.0.0.1 with TCP falls in bucket 0xd, 10.0.0.2 in bucket 8.
            assert_eq!(handles, [0, 0x2_080d, 0x1_100d], "{kernel}");
        }
    }

    /// The class, from 1, of a packet of UDP; 3 where no filter has it.
    fn band(tree: &mut Tree, bench: &mut Bench, from: u8, to: u8, ports: (u16, u16), frag_off: u16) -> usize {
        let mut p = packet(0, 100);
        let addr = |last| Ipv4Addr::new(10, 0, 0, last);
        p.l3 = L3::Ipv4(Ipv4 { frag_off, ..Ipv4::new(addr(from), addr(to), 17) });
        p.l4 = L4::Udp(Udp { sport: ports.0, dport: ports.1 });
        tree.enqueue(p, &mut bench.cx(0));
        let at = tree.dump_classes(Time::ZERO).iter().position(|c| c.stats.qlen > 0).unwrap();
        tree.dequeue(&mut bench.cx(0)).unwrap();
        at + 1
    }

    #[test]
    fn a_packet_is_of_its_session_and_sender() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V2_6_35));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![2u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        // 10.0.0.1 port 5004, from anywhere and from 10.0.0.2 port 7.
        let gpi =
            |key: u32, mask: u32| Options::new().with("key", key).with("mask", mask).with("offset", 0i64);
        let pinfo = || Options::new().with("protocol", 17u32).with("dpi", gpi(5004, 0xffff));
        let session = |class: u32, pinfo: Options| {
            let o = Options::new().with("dst", vec![10u8, 0, 0, 1]).with("pinfo", pinfo);
            o.with("classid", 0x1_0000 + class)
        };
        let named =
            session(2, pinfo().with("spi", gpi(7 << 16, 0xffff_0000))).with("src", vec![10u8, 0, 0, 2]);
        for o in [session(1, pinfo()), named] {
            tree.filter(&filter("add prio 1 protocol 800", "rsvp", Some(o)), &mut bench.cx(0)).unwrap();
        }
        let mut of = |from, to, ports, frag| band(&mut tree, &mut bench, from, to, ports, frag);
        assert_eq!(of(2, 1, (7, 5004), 0), 2);
        // Another port of the sender's, another sender: the filter that names none.
        assert_eq!((of(2, 1, (8, 5004), 0), of(3, 1, (7, 5004), 0)), (1, 1));
        // Another port, another destination, a fragment: no session.
        assert_eq!((of(2, 1, (7, 5005), 0), of(2, 4, (7, 5004), 0), of(2, 1, (7, 5004), 0x2000)), (3, 3, 3));
    }
}
