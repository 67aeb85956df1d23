//! Filters as conditions on bits, so that they can be compared.

use penstock_model::rtnetlink::FilterRequest;
use penstock_model::{Handle, Options};
use std::collections::BTreeMap;

/// Where the bits of a condition stand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Field {
    /// Four bytes so far from the beginning of the network header.
    Net(i32),
    /// Four bytes so far from the header behind it (`nexthdr+`).
    Next(i32),
    /// The packet's mark.
    Mark,
    /// A field of flower's by name.
    Named(&'static str),
    /// The device it came in by, as a number that stands for its name.
    Input(u64),
}

/// Bits that are looked at, and what they must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bits {
    /// Bits looked at.
    pub mask: u32,
    /// Their values.
    pub value: u32,
}

/// One filter, as it was asked for.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Kind.
    pub kind: String,
    /// What it hangs on; never [`Handle::UNSPEC`] where the device has a root.
    pub parent: Handle,
    /// Ethertype; 3 is every one.
    pub protocol: u16,
    /// Priority, as the kernel counts it.
    pub prio: u16,
    /// Whether nobody named the priority.
    pub auto: bool,
    /// Chain.
    pub chain: u32,
    /// Its handle where one was given.
    pub handle: u32,
    /// Options.
    pub options: Options,
    /// The class it names.
    pub classid: Option<Handle>,
    /// What must hold of a packet, all of it.
    pub tests: BTreeMap<Field, Bits>,
    /// Whether [`Filter::tests`] is all it asks for.
    pub exact: bool,
    /// Whether a packet that fits goes no further.
    pub ends: bool,
    /// Whether packets come to it by themselves and not only through another filter's `link` or `goto chain`.
    pub reached: bool,
    /// The command.
    pub step: usize,
}

/// Every ethertype: `ETH_P_ALL`.
pub const ALL: u16 = 3;
/// IPv4.
pub const IP: u16 = 0x0800;
/// IPv6.
pub const IP6: u16 = 0x86dd;
/// ARP.
pub const ARP: u16 = 0x0806;
/// 802.1Q.
pub const VLAN: u16 = 0x8100;
/// 802.1ad.
pub const QINQ: u16 = 0x88a8;

impl Filter {
    /// Whether every packet that fits `other` fits this one too.
    pub fn covers(&self, other: &Filter) -> bool {
        self.exact
            && (self.protocol == ALL || self.protocol == other.protocol)
            && self.tests.iter().all(|(field, need)| {
                let none = Bits { mask: 0, value: 0 };
                let have = other.tests.get(field).copied().unwrap_or(none);
                need.mask & !have.mask == 0 && (need.value ^ have.value) & need.mask == 0
            })
    }
    /// Whether it takes every packet of its protocol.
    pub fn takes_all(&self) -> bool {
        self.exact && self.ends && self.tests.values().all(|t| t.mask == 0)
    }
    /// Its actions: kind and options of each.
    pub fn actions(&self) -> impl Iterator<Item = (&str, &Options)> {
        let list =
            self.options.list("action").iter().filter_map(|a| Some((a.str("kind")?, a.nested("options")?)));
        list.chain(self.options.nested("police").map(|p| ("police", p)))
    }
    /// The keys of a u32: mask, value, offset, offset's mask.
    pub fn keys(&self) -> Vec<(u32, u32, i64, i64)> {
        let sel = self.options.nested("sel");
        let keys = sel.map_or(&[][..], |s| s.list("keys"));
        let n = |o: &Options, name: &str| o.u32(name).unwrap_or(0);
        keys.iter()
            .map(|k| (n(k, "mask"), n(k, "val"), k.i64("off").unwrap_or(0), k.i64("offmask").unwrap_or(0)))
            .collect()
    }
    /// Whether bits `mask` at `off` behind the network header's begin are looked at.
    pub fn looks_at(&self, off: i32, mask: u32) -> bool {
        self.tests.get(&Field::Net(off)).is_some_and(|b| b.mask & mask != 0)
    }
}

/// The filters of one device, in the order they were given.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    /// Those that stand.
    pub all: Vec<Filter>,
    /// Hash tables of u32 with their numbers of buckets, by qdisc and number.
    pub tables: BTreeMap<(Handle, u32), u32>,
    /// The lowest priority the kernel chose so far, by place and chain.
    chosen: BTreeMap<(Handle, u32), u16>,
    /// Priorities of u32 by qdisc, in the order they were made on it or its classes: the first one's own table is 800:, the next one's 801:.
    roots: BTreeMap<Handle, Vec<(Handle, u16, u32)>>,
}

impl Filters {
    /// A filter that was taken.
    pub fn add(&mut self, req: &FilterRequest, root: Option<Handle>, step: usize) {
        let parent = place(req.parent, root);
        let chain = req.chain.unwrap_or(0);
        let options = req.options.clone().unwrap_or_default();
        let auto = req.prio == 0;
        // `tcf_auto_prio`: 0xc000, and one less each time.
        let prio = if auto {
            let next = self.chosen.get(&(parent, chain)).map_or(0xc000, |p| p - 1);
            self.chosen.insert((parent, chain), next);
            next
        } else {
            req.prio
        };
        let u32 = req.kind.as_deref() == Some("u32");
        if u32 {
            let roots = self.roots.entry(parent.qdisc()).or_default();
            if !roots.contains(&(parent, prio, chain)) {
                roots.push((parent, prio, chain));
            }
        }
        // Nothing but a priority or a hash table is made.
        if let Some(divisor) = options.u32("divisor").filter(|_| u32) {
            self.tables.insert((parent.qdisc(), req.handle >> 20), divisor);
        }
        if u32 && (options.has("divisor") || options.is_empty()) {
            return;
        }
        // A filter that names a priority's table is asked with that priority, wherever it hangs.
        let hash = options.u32("hash").filter(|_| u32).unwrap_or(0);
        let named = (hash >> 20)
            .checked_sub(0x800)
            .and_then(|n| self.roots.get(&parent.qdisc())?.get(n as usize).copied());
        let (parent, prio, chain) = named.unwrap_or((parent, prio, chain));
        let kind = req.kind.clone().unwrap_or_default();
        let (tests, mut exact) = tests(&kind, req, &options);
        let classid = options.u32("classid").map(Handle);
        let root_table = hash == 0 || named.is_some();
        let links = options.has("link");
        exact &= !links && root_table;
        let ends = ends(&options)
            && !links
            && !(kind == "u32"
                && classid.is_none()
                && options.list("action").is_empty()
                && !options.has("police"));
        let filter = Filter {
            kind,
            parent,
            protocol: req.protocol,
            prio,
            auto,
            chain,
            handle: req.handle,
            classid,
            tests,
            exact,
            ends,
            reached: root_table && chain == 0,
            step,
            options,
        };
        if filter.handle != 0
            && let Some(same) = self.all.iter_mut().find(|f| {
                f.handle == filter.handle
                    && f.parent == parent
                    && f.prio == prio
                    && f.chain == chain
                    && f.kind == filter.kind
                    && f.kind != "u32"
            })
        {
            *same = filter;
            return;
        }
        self.all.push(filter);
    }
    /// A deletion that was carried out.
    pub fn delete(&mut self, req: &FilterRequest, root: Option<Handle>) {
        let parent = place(req.parent, root);
        self.all.retain(|f| {
            let meant = f.parent == parent
                && f.chain == req.chain.unwrap_or(0)
                && (req.prio == 0 || f.prio == req.prio)
                && (req.handle == 0 || f.handle == req.handle);
            !meant
        });
    }
}

fn place(parent: Handle, root: Option<Handle>) -> Handle {
    if parent == Handle::UNSPEC { root.unwrap_or(parent) } else { parent }
}

/// Whether a packet that fits goes no further: no action says `continue`, `reclassify` or names another chain.
fn ends(options: &Options) -> bool {
    let police = options.nested("police").into_iter();
    let all = options.list("action").iter().filter_map(|a| a.nested("options")).chain(police);
    let goes_on = |o: &Options| {
        let passes = |name: &str| {
            o.i64(name).is_some_and(|n| {
                n == i64::from(penstock_sched::act::UNSPEC)
                    || n == i64::from(penstock_sched::act::RECLASSIFY)
                    || n >= 1 << 28
            })
        };
        passes("action") || passes("result") || o.has("random")
    };
    let mut all = all.peekable();
    all.peek().is_none() || !all.any(goes_on)
}

/// What a filter asks of a packet, and whether that is all it asks.
fn tests(kind: &str, req: &FilterRequest, o: &Options) -> (BTreeMap<Field, Bits>, bool) {
    let mut tests = BTreeMap::new();
    let mut exact = true;
    let mut add = |field: Field, mask: u32, value: u32| {
        let bits = tests.entry(field).or_insert(Bits { mask: 0, value: 0 });
        // Bits that are asked for twice with different values fit nothing; both stay looked at.
        bits.value = bits.value & !mask | value & mask;
        bits.mask |= mask;
    };
    if let Some(dev) = o.str("indev") {
        let name = dev.bytes().fold(0u64, |n, b| n << 8 | u64::from(b));
        add(Field::Input(name), 1, 1);
    }
    match kind {
        "u32" => {
            if let Some(sel) = o.nested("sel") {
                for key in sel.list("keys") {
                    let n = |name: &str| key.u32(name).unwrap_or(0);
                    let off = key.i64("off").unwrap_or(0) as i32;
                    let field =
                        if key.i64("offmask").unwrap_or(0) == 0 { Field::Net(off) } else { Field::Next(off) };
                    add(field, n("mask"), n("val"));
                }
            }
            if let Some(mark) = o.nested("mark") {
                add(Field::Mark, mark.u32("mask").unwrap_or(0), mark.u32("val").unwrap_or(0));
            }
        }
        "fw" => {
            let mask = o.u32("mask").unwrap_or(u32::MAX);
            add(Field::Mark, mask, req.handle);
        }
        "matchall" => {}
        "flower" => exact &= flower(req.protocol, o, &mut add),
        "basic" => exact &= o.list("ematches").is_empty(),
        _ => exact = false,
    }
    (tests, exact)
}

fn flower(protocol: u16, o: &Options, add: &mut impl FnMut(Field, u32, u32)) -> bool {
    let mut exact = true;
    for (name, value) in o.iter() {
        let number = o.u32(name);
        let mask = |full: u32| {
            let named = format!("{name}_mask");
            o.u32(&named).unwrap_or(full)
        };
        match name {
            "classid" | "action" | "flags" | "indev" | "police" | "eth_type" | "hw_tc" => {}
            _ if name.ends_with("_mask") => {}
            "ip_proto" if protocol == IP => add(Field::Net(8), 0x00ff_0000, number.unwrap_or(0) << 16),
            "ip_tos" if protocol == IP => add(Field::Net(0), mask(0xff) << 16, number.unwrap_or(0) << 16),
            "ipv4_src" | "ipv4_dst" => {
                let four = |b: Option<&[u8]>| b.and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
                let at = if name == "ipv4_src" { 12 } else { 16 };
                let mask = four(o.bytes(&format!("{name}_mask"))).unwrap_or(u32::MAX);
                add(Field::Net(at), mask, four(o.bytes(name)).unwrap_or(0));
            }
            _ => match (value, number) {
                (_, Some(n)) => add(Field::Named(name), mask(u32::MAX), n),
                _ => exact = false,
            },
        }
    }
    exact
}

#[cfg(test)]
mod tests_of {
    use super::*;
    use penstock_lang::tc::{self, Command};
    use penstock_model::Kernel;

    fn filter(text: &str) -> Filter {
        let words: Vec<String> =
            format!("tc filter add dev eth0 parent 1: {text}").split(' ').map(str::to_owned).collect();
        let line = penstock_lang::token::Line::of_words(&words);
        let commands = tc::parse(&line.words, Kernel::V6_12).unwrap();
        let [Command::Filter { req, .. }] = commands.as_slice() else { panic!("{text}") };
        let mut all = Filters::default();
        all.add(req, None, 0);
        all.all.remove(0)
    }

    #[track_caller]
    fn check(a: &str, b: &str, want: bool) {
        assert_eq!(filter(a).covers(&filter(b)), want, "{a} | {b}");
    }

    #[test]
    fn one_filter_s_packets_within_another_s() {
        let u32 = |m: &str| format!("protocol ip prio 1 u32 match {m} flowid 1:1");
        check(&u32("ip src 10.0.0.0/8"), &u32("ip src 10.1.0.0/16"), true);
        check(&u32("ip src 10.1.0.0/16"), &u32("ip src 10.0.0.0/8"), false);
        check(&u32("u32 0 0"), &u32("ip dport 80 0xffff"), true);
        check(&u32("ip dport 80 0xffff"), &u32("ip dport 80 0xffff match ip protocol 6 0xff"), true);
        check(&u32("ip dport 80 0xffff"), &u32("ip sport 80 0xffff"), false);
        check("protocol all prio 1 matchall flowid 1:1", &u32("ip src 10.0.0.0/8"), true);
        check("protocol ip prio 1 flower ip_proto tcp flowid 1:1", &u32("ip protocol 6 0xff"), true);
        check("protocol ip prio 1 flower dst_ip 10.0.0.0/8 flowid 1:1", &u32("ip dst 10.9.9.9"), true);
        check(
            "protocol ip prio 1 handle 5 fw flowid 1:1",
            "protocol ip prio 1 handle 6 fw flowid 1:1",
            false,
        );
        check("protocol ipv6 prio 1 matchall flowid 1:1", &u32("ip src 10.0.0.0/8"), false);
    }

    #[test]
    fn what_goes_on_covers_nothing() {
        assert!(!filter("protocol ip prio 1 u32 match u32 0 0 action continue").ends);
        assert!(filter("protocol ip prio 1 u32 match u32 0 0 action drop").ends);
        assert!(filter("protocol ip prio 1 u32 match u32 0 0 flowid 1:1").takes_all());
    }
}
