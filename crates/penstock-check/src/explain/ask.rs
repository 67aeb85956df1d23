//! What a filter asks of a packet, as sets of packets; and what its actions then do.
//!
//! Follows: linux v6.12 `net/sched/cls_flower.c` `fl_set_key`, `net/core/flow_dissector.c`, `cls_fw.c`, `cls_basic.c`,
//! `act_api.c` `tcf_action_exec`.

use super::cube::{Any, Cube, Names, Place, both, range};
use super::ematch;
use crate::filters::{Filter, IP, IP6, QINQ, VLAN};
use penstock_model::{Options, Value};
use penstock_sched::act;

/// What is known of a packet besides its headers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct State {
    /// Its mark: bits that rules or actions have set, and their values. The others are as it came.
    pub mark: (u32, u32),
    /// Its ToS: bits that rules have set, and their values.
    pub tos: (u8, u8),
    /// Whether that is the traffic class of IPv6, which stands elsewhere in the first word.
    pub six: bool,
    /// Its priority.
    pub priority: Priority,
    /// Whether its source has been translated.
    pub translated: Option<Translated>,
    /// The mark of its connection, where one counts: bits that rules have set, and their values. The others are as they were.
    pub conn: (u32, u32),
}

/// To which address a source has been translated, where that is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Translated {
    /// Of IPv4.
    Four(Option<u32>),
    /// Of IPv6.
    Six(Option<u128>),
}

/// Where `skb->priority` comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Priority {
    /// Whoever made the packet.
    #[default]
    Given,
    /// The ToS, when the packet was forwarded: bits that were set by then, and their values.
    Tos(u8, u8),
    /// A rule or an action.
    Set(u32),
}

/// What a filter's actions say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Control {
    /// The filter's class.
    Ok,
    /// The packet is gone.
    Drop,
    /// It goes on elsewhere: the device's name.
    Elsewhere(String),
    /// The next filter is asked.
    Continue,
    /// All filters are asked again.
    Again,
    /// The filters of another chain are asked.
    Chain(u32),
}

/// `SKBEDIT_F_INHERITDSFIELD` of skbedit's `flags`: the code point becomes the priority.
const INHERITDSFIELD: u64 = 0x20;

/// Runs a filter's actions on what is known of a packet.
pub fn act(filter: &Filter, state: &mut State) -> Control {
    let mut said = act::OK;
    let mut elsewhere = None;
    for (kind, o) in filter.actions() {
        let control = o.i64("action").map_or(act::OK, |n| n as i32);
        said = match kind {
            "mirred" => {
                if matches!(o.u32("eaction"), Some(1 | 3)) {
                    elsewhere = Some(o.str("dev").unwrap_or("another device").to_owned());
                }
                control
            }
            // What conforms: the rate decides the rest.
            "police" => o.i64("result").map_or(act::OK, |n| n as i32),
            "connmark" => {
                state.mark = state.conn;
                control
            }
            "ctinfo" => {
                ctinfo(o, state);
                control
            }
            "skbedit" => {
                if let Some(mark) = o.u32("mark") {
                    let mask = o.u32("mask").unwrap_or(u32::MAX);
                    state.mark = (state.mark.0 | mask, state.mark.1 & !mask | mark & mask);
                }
                if let Some(priority) = o.u32("priority") {
                    state.priority = Priority::Set(priority);
                }
                //= linux v6.12 net/sched/act_skbedit.c tcf_skbedit_act
                if o.u64("flags").unwrap_or(0) & INHERITDSFIELD != 0 && state.tos.0 & 0xfc == 0xfc {
                    state.priority = Priority::Set(u32::from(state.tos.1 >> 2));
                }
                control
            }
            _ => control,
        };
        if said != act::PIPE {
            break;
        }
    }
    match said {
        act::SHOT => Control::Drop,
        act::STOLEN | act::QUEUED | act::TRAP | act::CONSUMED => {
            elsewhere.map_or(Control::Drop, Control::Elsewhere)
        }
        act::UNSPEC => Control::Continue,
        act::RECLASSIFY => Control::Again,
        n if n & !act::ARGUMENT == act::GOTO_CHAIN => Control::Chain((n & act::ARGUMENT) as u32),
        _ => Control::Ok,
    }
}

//= linux v6.12 net/sched/act_ctinfo.c tcf_ctinfo_act
/// `ctinfo`: what the connection's mark says of the DSCP and of the mark. A DSCP that hangs on bits which are not known is left.
fn ctinfo(o: &Options, state: &mut State) {
    let (known, mark) = state.conn;
    let flag = o.u32("dscpstate").unwrap_or(0);
    if let Some(mask) = o.u32("dscp").filter(|m| *m != 0 && m & !known == 0)
        && (flag == 0 || mark & flag & known != 0)
    {
        let dscp = ((mark & mask) >> mask.trailing_zeros()) as u8;
        state.tos = (state.tos.0 | 0xfc, state.tos.1 & 3 | dscp << 2);
    }
    if let Some(mask) = o.u32("cpmark") {
        state.mark = (known | !mask, mark & mask);
    }
}

/// Whether a filter whose actions say `continue` ends its priority: `fl_classify` asks no further mask, `fw_classify` looks for the mark it read
/// first, and matchall has one filter.
pub fn skips(filter: &Filter) -> bool {
    matches!(filter.kind.as_str(), "flower" | "fw" | "matchall")
}

/// The packets that fit a filter which looks at headers in no order: every kind but u32.
pub fn packets(filter: &Filter, state: &State, names: &mut Names) -> Any {
    let asked = match filter.kind.as_str() {
        "matchall" => vec![Cube::all()],
        "fw" => {
            let mask = filter.options.u32("mask").unwrap_or(u32::MAX);
            //= linux v6.12 net/sched/cls_fw.c fw_classify
            // A handle with bits outside the mask is no mark's.
            let fits = filter.handle & !mask == 0;
            mark(state, mask, filter.handle & mask).filter(|_| fits).into_iter().collect()
        }
        "basic" | "flow" => ematch::packets(filter.options.list("ematches"), filter.protocol, names)
            .map(|all| all.into_iter().filter_map(|c| adapt(&c, state)).collect())
            .unwrap_or_else(|| unknown(filter, names)),
        "flower" => flower(filter, state, names),
        _ => unknown(filter, names),
    };
    framed(filter, asked, names)
}

/// Of these packets those that a filter's protocol and its `indev` let it see.
pub fn framed(filter: &Filter, asked: Any, names: &mut Names) -> Any {
    let protocol = Cube::protocol(filter.protocol, names);
    let asked = match filter.options.str("indev") {
        Some(dev) => {
            let from = Cube::of(Place::Input, 0xffff, names.input(dev));
            both(&asked, &[from]).unwrap_or_default()
        }
        None => asked,
    };
    asked.iter().filter_map(|c| c.and(&protocol)).collect()
}

/// What cannot be told from the headers.
fn unknown(filter: &Filter, names: &mut Names) -> Any {
    // Two filters of one priority ask for realms of their own.
    let realms = |name: &str| filter.options.u32(name).map(|n| format!(" {name} {n}"));
    let own: String = ["to", "from", "fromif"]
        .iter()
        .filter_map(|n| realms(n))
        .filter(|_| filter.kind == "route")
        .collect();
    let text = format!("what {}{own} of priority {} asks", filter.kind, filter.prio);
    vec![Cube::of(Place::Other(names.other(&text)), 1, 1)]
}

/// A mark's bits, where rules may have set some: `None` where they cannot be so.
pub fn mark(state: &State, mask: u32, value: u32) -> Option<Cube> {
    let (known, is) = state.mark;
    if (is ^ value) & mask & known != 0 {
        return None;
    }
    Some(Cube::of(Place::Mark, mask & !known, value))
}

/// Where the ToS, or the traffic class, stands in a header's first word.
pub fn tos_at(six: bool) -> u32 {
    if six { 20 } else { 16 }
}

/// A set as a packet comes, from one as the filters see it.
pub fn adapt(cube: &Cube, state: &State) -> Option<Cube> {
    let mut out = Cube::all();
    for &(place, bits, value) in &cube.0 {
        let one = match place {
            Place::Mark => mark(state, bits, value)?,
            Place::Word(0) if state.tos.0 != 0 => {
                let shift = tos_at(state.six);
                let known = u32::from(state.tos.0) << shift;
                if (u32::from(state.tos.1) << shift ^ value) & bits & known != 0 {
                    return None;
                }
                Cube::of(place, bits & !known, value)
            }
            Place::Priority => match state.priority {
                Priority::Set(n) if (n ^ value) & bits != 0 => return None,
                Priority::Set(_) => Cube::all(),
                _ => Cube::of(place, bits, value),
            },
            _ => Cube::of(place, bits, value),
        };
        out = out.and(&one)?;
    }
    Some(out)
}

/// flower's fields. What does not belong to the protocol is left out, as the kernel leaves it out.
fn flower(filter: &Filter, state: &State, names: &mut Names) -> Any {
    let o = &filter.options;
    let is_tag = |ethertype: u16| matches!(ethertype, VLAN | QINQ);
    let ethertype = |name: &str| o.u32(name).map(|n| n as u16);
    // Each tag's ethertype names what stands behind it.
    let outer = is_tag(filter.protocol);
    let next = ethertype("vlan_ethtype").filter(|_| outer);
    let two = next.is_some_and(is_tag);
    let family = match (outer, two) {
        (false, _) => filter.protocol,
        (true, false) => next.unwrap_or(0),
        (true, true) => ethertype("cvlan_ethtype").unwrap_or(0),
    };
    let six = family == IP6;
    // A second tag lies in the packet, before its headers.
    let inner = if two { 4 } else { 0 };
    let mut all = vec![Cube::all()];
    if let Some(next) = next {
        all = both(&all, &[Cube::ethertype(next)]).unwrap_or_default();
    }
    if two && family != 0 {
        all = both(&all, &[Cube::of(Place::Word(0), 0xffff, family.into())]).unwrap_or_default();
    }
    let mut join = |more: Option<Any>, names: &mut Names| match more.and_then(|m| both(&all, &m)) {
        Some(joined) => all = joined,
        None => all = unknown(filter, names),
    };
    let proto = o.u32("ip_proto").unwrap_or(0);
    // The transport header of fragments is not looked at.
    let whole = || if six { Cube::all() } else { Cube::of(Place::Word(inner + 4), 0x3fff, 0) };
    let transport = inner + if six { 40 } else { 20 };
    for (name, _) in o.iter() {
        let number = o.u32(name).unwrap_or(0);
        let mask = |full: u32| o.u32(&format!("{name}_mask")).unwrap_or(full);
        let one = |c: Cube| Some(vec![c]);
        let bytes = |off: i32, len: usize| {
            let value = o.bytes(name).unwrap_or_default();
            let masked = o.bytes(&format!("{name}_mask")).map_or(vec![0xff; len], <[u8]>::to_vec);
            Cube::bytes(off, value, &masked).map(|c| vec![c])
        };
        let ip = family == IP || six;
        let more = match name {
            "classid" | "action" | "flags" | "indev" | "police" | "eth_type" | "hw_tc" => continue,
            _ if name.ends_with("_mask") => continue,
            "dst_mac" => bytes(-14, 6),
            "src_mac" => bytes(-8, 6),
            "vlan_ethtype" | "cvlan_ethtype" | "vlan_tpid" | "cvlan_tpid" => continue,
            "vlan_id" if outer => one(Cube::of(Place::Tag, mask(0xfff), number)),
            "vlan_prio" if outer => one(Cube::of(Place::Tag, mask(7) << 13, number << 13)),
            "cvlan_id" if two => one(Cube::of(Place::Word(0), mask(0xfff) << 16, number << 16)),
            "cvlan_prio" if two => one(Cube::of(Place::Word(0), mask(7) << 29, number << 29)),
            "vlan_id" | "vlan_prio" | "cvlan_id" | "cvlan_prio" => continue,
            "ip_proto" if six => one(Cube::of(Place::Word(inner + 4), 0xff00, number << 8)),
            "ip_proto" if ip => one(Cube::of(Place::Word(inner + 8), 0x00ff_0000, number << 16)),
            "ip_tos" if six => one(Cube::of(Place::Word(inner), mask(0xff) << 20, number << 20)),
            "ip_tos" if ip => one(Cube::of(Place::Word(inner), mask(0xff) << 16, number << 16)),
            "ip_ttl" if six => one(Cube::of(Place::Word(inner + 4), mask(0xff), number)),
            "ip_ttl" if ip => one(Cube::of(Place::Word(inner + 8), mask(0xff) << 24, number << 24)),
            "ipv4_src" if family == IP => bytes(inner + 12, 4),
            "ipv4_dst" if family == IP => bytes(inner + 16, 4),
            "ipv6_src" if six => bytes(inner + 8, 16),
            "ipv6_dst" if six => bytes(inner + 24, 16),
            "tcp_src" | "udp_src" | "sctp_src" if ip && of_protocol(name, proto) => {
                Cube::of(Place::Word(transport), mask(0xffff) << 16, number << 16)
                    .and(&whole())
                    .map(|c| vec![c])
            }
            "tcp_dst" | "udp_dst" | "sctp_dst" if ip && of_protocol(name, proto) => {
                Cube::of(Place::Word(transport), mask(0xffff), number).and(&whole()).map(|c| vec![c])
            }
            "port_src_min" | "port_dst_min" if ip => {
                let to = o.u32(&name.replace("min", "max")).unwrap_or(number);
                let shift = if name == "port_src_min" { 16 } else { 0 };
                both(&range(Place::Word(transport), shift, 16, number, to), &[whole()])
            }
            "port_src_max" | "port_dst_max" => continue,
            "tcp_flags" if ip && proto == 6 => {
                let flags = Cube::of(Place::Word(transport + 12), mask(0xfff) << 16, number << 16);
                flags.and(&whole()).map(|c| vec![c])
            }
            "icmpv4_type" if family == IP => {
                one(Cube::of(Place::Word(inner + 20), mask(0xff) << 24, number << 24))
            }
            "icmpv4_code" if family == IP => {
                one(Cube::of(Place::Word(inner + 20), mask(0xff) << 16, number << 16))
            }
            "icmpv6_type" if six => one(Cube::of(Place::Word(inner + 40), mask(0xff) << 24, number << 24)),
            "icmpv6_code" if six => one(Cube::of(Place::Word(inner + 40), mask(0xff) << 16, number << 16)),
            "ip_flags" if family == IP && mask(0) == 1 && number == 0 => {
                one(Cube::of(Place::Word(inner + 4), 0x3fff, 0))
            }
            "ip_proto" | "ip_tos" | "ip_ttl" | "ipv4_src" | "ipv4_dst" | "ipv6_src" | "ipv6_dst"
            | "tcp_src" | "tcp_dst" | "udp_src" | "udp_dst" | "sctp_src" | "sctp_dst" | "tcp_flags" => {
                continue;
            }
            _ => {
                let value = |name: &str| o.value(name).map(plain);
                let masked = value(&format!("{name}_mask")).map_or(String::new(), |m| format!("/{m}"));
                let text = format!("{name} {}{masked}", value(name).unwrap_or_default());
                one(Cube::of(Place::Other(names.other(&text)), 1, 1))
            }
        };
        join(more, names);
    }
    all.iter().filter_map(|c| adapt(c, state)).collect()
}

/// A value in words.
fn plain(value: &Value) -> String {
    match value {
        Value::Flag => String::new(),
        Value::U32(n) => n.to_string(),
        Value::U64(n) => n.to_string(),
        Value::I64(n) => n.to_string(),
        Value::Str(text) => text.clone(),
        Value::Bytes(bytes) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        Value::Nested(_) | Value::List(_) => "…".to_owned(),
    }
}

fn of_protocol(name: &str, proto: u32) -> bool {
    match &name[..3] {
        "tcp" => proto == 6,
        "udp" => proto == 17,
        _ => proto == 132,
    }
}

/// What flower's filters are looked up by: filters with the same masks are asked together.
pub fn masks(o: &Options) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = o
        .iter()
        .filter(|(name, _)| {
            !matches!(*name, "classid" | "action" | "flags" | "police" | "hw_tc" | "eth_type")
        })
        .filter(|(name, _)| !name.ends_with("_mask"))
        .map(|(name, value)| {
            let mask = o.value(&format!("{name}_mask"));
            // Ranges are kept apart by their ends.
            let text = mask
                .map_or(if name.starts_with("port_") { format!("{value:?}") } else { String::new() }, |m| {
                    format!("{m:?}")
                });
            (name.to_owned(), text)
        })
        .collect();
    out.sort();
    out
}
