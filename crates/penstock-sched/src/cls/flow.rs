//! `flow`: a class computed from fields of the packet.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_flow.c`.
//! Differs: where a packet lacks an address or a port, the kernel takes the hashed address of its socket, its route or its
//! connection: here one random number each for a filter. `skuid` and `skgid` are root's, `rt-classid` is 0. The tables of netfilter are not
//! looked at: `nfct-src` and its kin are what they are for a connection that is not rewritten.

use super::ematch::Tree as Matches;
use super::list::List;
use super::{Answer, Change, Classifier, ClsSpec, Exts, Hit, Shared, Target};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options, Rng, Time};
use penstock_packet::{L3, L4, Skb};
use std::cell::Cell;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "flow",
    about: "a class computed from fields of the packet, or from their hash",
    kernels: &Kernel::ALL,
    simulated: true,
    build: |_, kernel, _| Box::new(Flow { kernel, filters: List::new() }),
};

const HASH: u32 = 1;
/// Keys there are: `FLOW_KEY_MAX` + 1. `rxhash` came after 2.6.35.
const KEYS: [u32; 2] = [17, 18];

/// A priority of flow filters, oldest first.
struct Flow {
    kernel: Kernel,
    filters: List<Filter>,
}

#[derive(Clone)]
struct Params {
    keys: u32,
    mode: u32,
    mask: u32,
    xor: u32,
    rshift: u32,
    addend: u32,
    divisor: u32,
    baseclass: Handle,
    /// Seconds.
    perturb: u32,
}

struct Filter {
    params: Params,
    matches: Matches,
    exts: Exts,
    /// When it was made: from here on `perturb` counts.
    made: Time,
    dice: Cell<Dice>,
}

/// What a filter has thrown: as late as a packet asks for it.
#[derive(Clone, Copy, Debug, Default)]
struct Dice {
    /// `hashrnd`, and in which period of `perturb` it was thrown.
    hash: Option<(i64, u32)>,
    /// What stands for the socket, and for everything else that has an address in the kernel.
    socket: Option<u32>,
    other: Option<u32>,
}

/// Bits of the keys.
const SRC: u32 = 0;
const DST: u32 = 1;
const PROTO: u32 = 2;
const PROTO_SRC: u32 = 3;
const PROTO_DST: u32 = 4;
const IIF: u32 = 5;
const PRIORITY: u32 = 6;
const MARK: u32 = 7;
const NFCT: u32 = 8;
const NFCT_SRC: u32 = 9;
const NFCT_DST: u32 = 10;
const NFCT_PROTO_SRC: u32 = 11;
const NFCT_PROTO_DST: u32 = 12;
const VLAN_TAG: u32 = 16;

/// What of a packet the keys are made of: `struct flow_keys`, 0 where it is not there.
struct Keys {
    src: u32,
    dst: u32,
    protocol: u8,
    ports: (u16, u16),
}

impl Keys {
    /// `skb_flow_dissect_flow_keys`; 2.6.35 looks at the last 32 bits of an IPv6 address.
    fn of(skb: &Skb, kernel: Kernel) -> Keys {
        let (l3, l4) = skb.dissected();
        let ports = match l4 {
            L4::Tcp(tcp) => (tcp.sport, tcp.dport),
            L4::Udp(udp) => (udp.sport, udp.dport),
            _ => (0, 0),
        };
        let fold = |address: u128| match kernel {
            Kernel::V2_6_35 => address as u32,
            Kernel::V6_12 | Kernel::V7_2 => (0..4).fold(0, |sum, word| sum ^ (address >> (32 * word)) as u32),
        };
        match l3 {
            L3::Ipv4(h) => Keys {
                src: h.src.to_bits(),
                dst: h.dst.to_bits(),
                protocol: h.protocol,
                ports: if h.frag_off & 0x3fff == 0 { ports } else { (0, 0) },
            },
            L3::Ipv6(h) => Keys {
                src: fold(h.src.to_bits()),
                dst: fold(h.dst.to_bits()),
                protocol: h.protocol(),
                ports: if h.fragment().is_none() { ports } else { (0, 0) },
            },
            _ => Keys { src: 0, dst: 0, protocol: 0, ports: (0, 0) },
        }
    }
}

impl Filter {
    /// A number thrown once.
    fn thrown(&self, place: fn(&mut Dice) -> &mut Option<u32>, rng: &mut Rng) -> u32 {
        let mut dice = self.dice.get();
        let number = *place(&mut dice).get_or_insert_with(|| rng.next_u32());
        self.dice.set(dice);
        number
    }
    /// `hashrnd`: thrown anew each `perturb` seconds.
    fn hash_seed(&self, now: Time, rng: &mut Rng) -> u32 {
        let period = i64::from(self.params.perturb) * 1_000_000_000;
        let turn = if period > 0 { (now.as_ns() - self.made.as_ns()) / period } else { 0 };
        let mut dice = self.dice.get();
        let seed = match dice.hash {
            Some((thrown, seed)) if thrown == turn => seed,
            _ => rng.next_u32(),
        };
        dice.hash = Some((turn, seed));
        self.dice.set(dice);
        seed
    }
    /// `flow_key_get`.
    fn key(&self, key: u32, keys: &Keys, skb: &Skb, rng: &mut Rng) -> u32 {
        let socket = |rng: &mut Rng| self.thrown(|d| &mut d.socket, rng);
        let route = |rng: &mut Rng| self.thrown(|d| &mut d.other, rng) ^ u32::from(skb.protocol().to_be());
        // A port of 0 beside one that is not counts.
        let (sport, dport) = keys.ports;
        let ports = keys.ports != (0, 0);
        match key {
            SRC | NFCT_SRC if keys.src != 0 => keys.src,
            DST | NFCT_DST if keys.dst != 0 => keys.dst,
            PROTO_SRC | NFCT_PROTO_SRC if ports => u32::from(sport),
            PROTO_DST | NFCT_PROTO_DST if ports => u32::from(dport),
            SRC | NFCT_SRC | PROTO_SRC | NFCT_PROTO_SRC => socket(rng),
            DST | NFCT_DST | PROTO_DST | NFCT_PROTO_DST => route(rng),
            PROTO => u32::from(keys.protocol),
            IIF => skb.iif,
            PRIORITY => skb.priority,
            MARK => skb.mark,
            NFCT => self.thrown(|d| &mut d.other, rng),
            VLAN_TAG => skb.rare().vlan.map_or(0, |(_, tci)| u32::from(tci & 0xfff)),
            _ => 0,
        }
    }
    /// The class it computes.
    fn classid(&self, skb: &Skb, kernel: Kernel, cx: &mut Cx<'_>) -> Handle {
        let p = &self.params;
        let fields = Keys::of(skb, kernel);
        let mut keys = [0; KEYS[1] as usize];
        let mut n = 0;
        for key in (0..KEYS[1]).filter(|key| p.keys & 1 << key != 0) {
            keys[n] = self.key(key, &fields, skb, cx.rng);
            n += 1;
        }
        let mut minor = if p.mode == HASH {
            let seed = self.hash_seed(cx.now, cx.rng);
            match kernel {
                Kernel::V2_6_35 => jhash2_old(&keys[..n], seed),
                Kernel::V6_12 | Kernel::V7_2 => jhash2(&keys[..n], seed),
            }
        } else {
            (((keys[0] & p.mask) ^ p.xor) >> p.rshift).wrapping_add(p.addend)
        };
        if p.divisor != 0 {
            minor %= p.divisor;
        }
        Handle::new(p.baseclass.major(), p.baseclass.0.wrapping_add(minor) as u16)
    }
}

/// `jhash2` of `include/linux/jhash.h`: Bob Jenkins' hash of 2006.
pub fn jhash2(keys: &[u32], initval: u32) -> u32 {
    let start = 0xdead_beefu32.wrapping_add((keys.len() as u32) << 2).wrapping_add(initval);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut left = keys;
    while left.len() > 3 {
        a = a.wrapping_add(left[0]);
        b = b.wrapping_add(left[1]);
        c = c.wrapping_add(left[2]);
        for [first, second] in [[4, 6], [8, 16], [19, 4]] {
            // Each step of the mix turns the three around.
            a = a.wrapping_sub(c) ^ c.rotate_left(first);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(second);
            a = a.wrapping_add(c);
            (a, b, c) = (c, a, b);
        }
        left = &left[3..];
    }
    if left.is_empty() {
        return c;
    }
    let part = |n: usize| left.get(n).copied().unwrap_or(0);
    a = a.wrapping_add(part(0));
    b = b.wrapping_add(part(1));
    c = c.wrapping_add(part(2));
    for [first, second, third] in [[14, 11, 25], [16, 4, 14]] {
        c = (c ^ b).wrapping_sub(b.rotate_left(first));
        a = (a ^ c).wrapping_sub(c.rotate_left(second));
        b = (b ^ a).wrapping_sub(a.rotate_left(third));
    }
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// `jhash2` as 2.6.35 has it: Bob Jenkins' hash of 1996.
fn jhash2_old(keys: &[u32], initval: u32) -> u32 {
    const GOLDEN_RATIO: u32 = 0x9e37_79b9;
    let (mut a, mut b, mut c) = (GOLDEN_RATIO, GOLDEN_RATIO, initval);
    let mix = |a: &mut u32, b: &mut u32, c: &mut u32| {
        for (x, y, z) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] {
            *a = a.wrapping_sub(*b).wrapping_sub(*c) ^ (*c >> x);
            *b = b.wrapping_sub(*c).wrapping_sub(*a) ^ (*a << y);
            *c = c.wrapping_sub(*a).wrapping_sub(*b) ^ (*b >> z);
        }
    };
    let mut left = keys;
    while left.len() >= 3 {
        a = a.wrapping_add(left[0]);
        b = b.wrapping_add(left[1]);
        c = c.wrapping_add(left[2]);
        mix(&mut a, &mut b, &mut c);
        left = &left[3..];
    }
    c = c.wrapping_add((keys.len() as u32) * 4);
    a = a.wrapping_add(left.first().copied().unwrap_or(0));
    b = b.wrapping_add(left.get(1).copied().unwrap_or(0));
    mix(&mut a, &mut b, &mut c);
    c
}

impl Classifier for Flow {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// `flow_classify`.
    fn classify(&self, _: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        for (_, f) in self.filters.iter() {
            if !f.matches.matches(skb, cx.rng) {
                continue;
            }
            let hit = Hit { classid: f.classid(skb, self.kernel, cx), class: 0 };
            if let Some(answer) = f.exts.exec(hit, skb, cx) {
                return Some(answer);
            }
        }
        None
    }
    fn exact(&self) -> bool {
        self.filters.iter().all(|(_, f)| f.matches.is_exact())
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        self.filters.has(handle)
    }
    fn change(&mut self, shared: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let einval = || KernelError::errno(KernelError::EINVAL);
        let o = change.options.ok_or_else(einval)?;
        let u32 = |name| o.u32(name);
        if u32("rshift").is_some_and(|n| n > 31) && self.kernel >= Kernel::V6_12 {
            return Err(KernelError::errno(KernelError::ERANGE));
        }
        let mut baseclass = Handle(u32("baseclass").unwrap_or(0));
        if u32("baseclass").is_some() && baseclass.minor() == 0 {
            return Err(einval());
        }
        let keys = u32("keys");
        let nkeys = keys.map_or(0, u32::count_ones);
        let known = KEYS[usize::from(self.kernel >= Kernel::V6_12)];
        if keys == Some(0) {
            return Err(einval());
        }
        if keys.is_some_and(|keys| keys >> known != 0) {
            return Err(KernelError::errno(KernelError::EOPNOTSUPP));
        }
        let (matches, exts) = if self.kernel >= Kernel::V6_12 {
            let matches = Matches::new(o.list("ematches"), self.kernel)?;
            (matches, Exts::validate(o, 0, &mut change)?)
        } else {
            let exts = Exts::validate(o, 0, &mut change)?;
            (Matches::new(o.list("ematches"), self.kernel)?, exts)
        };
        let handle = change.handle;
        let old = self.filters.get(handle).map(|f| f.params.clone());
        if old.is_none() && (handle == 0 || keys.is_none()) {
            return Err(einval());
        }
        let mode = u32("mode").unwrap_or(old.as_ref().map_or(0, |f| f.mode));
        if mode != HASH && (nkeys > 1 || u32("perturb").is_some()) {
            return Err(einval());
        }
        let kept = old.as_ref().filter(|_| mode == HASH).map_or(0, |f| f.perturb);
        let perturb = u32("perturb").unwrap_or(kept);
        if old.is_none() {
            if baseclass.major() == 0 {
                if shared.is_block() {
                    let why = "Must specify baseclass when attaching flow filter to block";
                    return Err(change.device.refusal(KernelError::EINVAL, why));
                }
                baseclass = Handle::new(shared.qdisc.major(), baseclass.minor());
            }
            if baseclass.minor() == 0 {
                baseclass = Handle::new(baseclass.major(), 1);
            }
        }
        let mut params = old.unwrap_or(Params {
            keys: 0,
            mode,
            mask: u32::MAX,
            xor: 0,
            rshift: 0,
            addend: 0,
            divisor: 0,
            baseclass,
            perturb,
        });
        for (name, field) in [
            ("keys", &mut params.keys),
            ("mask", &mut params.mask),
            ("xor", &mut params.xor),
            ("rshift", &mut params.rshift),
            ("addend", &mut params.addend),
            ("divisor", &mut params.divisor),
        ] {
            *field = u32(name).unwrap_or(*field);
        }
        (params.mode, params.perturb) = (mode, perturb);
        if baseclass != Handle::UNSPEC {
            params.baseclass = baseclass;
        }
        let exts = match self.filters.get_mut(handle) {
            // 2.6.35 keeps the actions it is not given anew.
            Some(filter) if self.kernel == Kernel::V2_6_35 && exts.is_empty() => {
                std::mem::take(&mut filter.exts)
            }
            _ => exts,
        };
        // A change keeps what was thrown; its time begins anew.
        let mut dice = self.filters.get(handle).map_or_else(Dice::default, |filter| filter.dice.get());
        dice.hash = dice.hash.map(|(_, seed)| (0, seed));
        let filter = Filter { params, matches, exts, made: change.now, dice: Cell::new(dice) };
        self.filters.insert(handle, filter);
        Ok(())
    }
    fn delete(
        &mut self,
        _: &mut Shared,
        handle: u32,
        _: &Device,
        _: &mut dyn Classful,
    ) -> Result<bool, KernelError> {
        self.filters.remove(handle);
        Ok(self.filters.is_empty())
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        for (handle, f) in self.filters.iter() {
            let p = &f.params;
            let mut o = Options::new().with("keys", p.keys).with("mode", p.mode);
            if p.mask != u32::MAX || p.xor != 0 {
                o = o.with("mask", p.mask).with("xor", p.xor);
            }
            for (name, value) in [
                ("rshift", p.rshift),
                ("addend", p.addend),
                ("divisor", p.divisor),
                ("baseclass", p.baseclass.0),
                ("perturb", p.perturb),
            ] {
                if value != 0 {
                    o = o.with(name, value);
                }
            }
            f.exts.dump(&mut o, look);
            f.matches.dump(&mut o);
            visit(handle, Some(o));
        }
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.filters.iter().for_each(|(_, f)| visit(&f.exts));
    }
    fn targets(&mut self, _: &mut Shared, _: &mut dyn FnMut(&mut Target)) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, packet, qdisc};
    use crate::tree::Tree;

    #[test]
    fn jenkins_hashes() {
        // The kernel's own functions, compiled.
        let keys = [1u32, 2, 3, 4, 5];
        assert_eq!(
            [1, 2, 3, 4, 5].map(|n| jhash2(&keys[..n], 7)),
            [0xb302_f24e, 0x79f0_851f, 0xfbd6_12ad, 0xbcb6_2b19, 0x5a4f_3b1e]
        );
        assert_eq!(
            [1, 2, 3, 4, 5].map(|n| jhash2_old(&keys[..n], 7)),
            [0xd54e_9793, 0xa6be_0e83, 0x0b7a_0740, 0x03e7_766d, 0xf44a_95d6]
        );
    }

    #[test]
    fn a_class_by_the_last_byte_of_the_address_or_by_all_of_the_flow() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = Tree::new(device(kernel));
            let mut req = qdisc("add root handle 1: prio");
            req.options = Some(Options::new().with("bands", 8u32).with("priomap", vec![0u8; 16]));
            tree.qdisc(&req, &mut bench.cx(0)).unwrap();
            let set = |bench: &mut Bench, tree: &mut Tree, o: Options| {
                let req = filter("replace prio 1 protocol 3 handle 1", "flow", Some(o));
                tree.filter(&req, &mut bench.cx(0)).unwrap();
            };
            let queued =
                |tree: &Tree| tree.dump_classes(Time::ZERO).iter().map(|c| c.stats.qlen).collect::<Vec<_>>();
            let map = Options::new().with("keys", 1u32 << SRC).with("mask", 0xffu32).with("addend", 1u32);
            set(&mut bench, &mut tree, map.with("divisor", 8u32));
            tree.enqueue(packet(0, 100), &mut bench.cx(0));
            // 10.0.0.1: 1 and 1 behind 1:1.
            assert_eq!(queued(&tree), [0, 0, 1, 0, 0, 0, 0, 0], "{kernel}");
            let hash = Options::new().with("keys", 0x1fu32).with("mode", HASH).with("divisor", 8u32);
            set(&mut bench, &mut tree, hash);
            for n in 1..=20 {
                tree.enqueue(packet(n, 100), &mut bench.cx(0));
            }
            let mut all = queued(&tree);
            all.sort_unstable();
            assert!(all[7] >= 20 && all.iter().sum::<u32>() == 21, "one flow, one class: {all:?} {kernel}");
        }
    }

    #[test]
    fn what_is_refused_and_what_the_kernel_fills_in() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V6_12));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        let mut add = |handle: &str, o: Options| {
            let req = filter(&format!("add prio 1 protocol 3{handle}"), "flow", Some(o));
            tree.filter(&req, &mut bench.cx(0)).map_err(|e| e.errno)
        };
        let keys = |keys: u32| Options::new().with("keys", keys);
        assert_eq!(add("", keys(1)), Err(KernelError::EINVAL));
        assert_eq!(add(" handle 1", Options::new()), Err(KernelError::EINVAL));
        assert_eq!(add(" handle 1", keys(3)), Err(KernelError::EINVAL));
        assert_eq!(add(" handle 1", keys(1 << 18)), Err(KernelError::EOPNOTSUPP));
        assert_eq!(add(" handle 1", keys(1).with("perturb", 5u32)), Err(KernelError::EINVAL));
        assert_eq!(add(" handle 1", keys(1).with("rshift", 32u32)), Err(KernelError::ERANGE));
        assert_eq!(add(" handle 1", keys(3).with("mode", 1u32).with("perturb", 5u32)), Ok(()));
        let dump = tree.dump_filters(Handle::UNSPEC, bench.look()).unwrap().pop().unwrap();
        let want = keys(3).with("mode", 1u32).with("baseclass", 0x1_0001u32).with("perturb", 5u32);
        assert_eq!(dump.options, Some(want));
    }
}
