//! What a rule of iptables asks, as sets of packets.

use super::super::ask::State;
use super::super::cube::{Any, Cube, Names, Place, both, in_states, none_of, range};
use crate::filters::{IP, IP6};
use penstock_lang::iptables::extension::state;
use penstock_lang::iptables::{
    AddrMatch, Conntrack, Family, Iface, Match, PortKind, PortMatch, Rule, print_target,
};

/// A rule's tests of ToS and marks, as they are by then.
pub(super) fn of_state(family: Family, rule: &Rule, state: &State) -> Any {
    let mut all = vec![Cube::all()];
    for m in &rule.matches {
        let tos = |value: u8, mask: u8| {
            let at = super::super::ask::tos_at(family == Family::Ip6);
            let cube = Cube::of(Place::Word(0), u32::from(mask) << at, u32::from(value) << at);
            super::super::ask::adapt(&cube, state)
        };
        let (fits, invert) = match m {
            Match::Dscp { dscp, invert } => (tos(dscp << 2, 0xfc), *invert),
            Match::Tos { value, mask, invert } => (tos(*value, *mask), *invert),
            Match::Mark { mark, mask, invert } | Match::Connmark { mark, mask, invert } => {
                let known = if matches!(m, Match::Mark { .. }) { state.mark } else { state.conn };
                let state = State { mark: known, ..State::default() };
                let fits = super::super::ask::mark(&state, *mask, *mark).filter(|_| mark & !mask == 0);
                (fits, *invert)
            }
            _ => continue,
        };
        let fits: Any = fits.into_iter().collect();
        let fits = if invert { none_of(&fits) } else { Some(fits) };
        all = fits.and_then(|f| both(&all, &f)).unwrap_or_default();
    }
    all
}

/// What a rule asks of headers, but for mark and ToS; `None` where its parts would be too many.
pub(super) fn headers(family: Family, rule: &Rule, hook: &str, names: &mut Names) -> Option<Any> {
    let six = family == Family::Ip6;
    let mut all = vec![Cube::ethertype(if six { IP6 } else { IP })];
    let mut join = |more: Any, invert: bool| -> Option<()> {
        let more = if invert { none_of(&more)? } else { more };
        all = both(&all, &more)?;
        Some(())
    };
    if let Some(input) = rule.input.as_ref().filter(|_| !matches!(hook, "POSTROUTING" | "OUTPUT")) {
        join(devices(input, names), input.invert)?;
    }
    for (addr, off) in [(&rule.src, if six { 8 } else { 12 }), (&rule.dst, if six { 24 } else { 16 })] {
        if let Some(addr) = addr {
            join(address(addr, off, six), addr.invert)?;
        }
    }
    if let Some((protocol, invert)) = rule.protocol {
        join(vec![proto(protocol, six)], invert)?;
    }
    if let Some(invert) = rule.fragment {
        let first = Cube::of(Place::Word(4), 0x1fff, 0);
        join(vec![first], !invert)?;
    }
    let port = if six { 40 } else { 20 };
    let whole = if six { Cube::all() } else { Cube::of(Place::Word(4), 0x1fff, 0) };
    let ports = |m: &PortMatch, shift: u32| -> Option<Any> {
        let fits = range(Place::Word(port), shift, 16, m.ports.from.into(), m.ports.to.into());
        if m.invert { none_of(&fits) } else { Some(fits) }
    };
    for m in &rule.matches {
        match m {
            Match::Comment(_)
            | Match::Mark { .. }
            | Match::Connmark { .. }
            | Match::Dscp { .. }
            | Match::Tos { .. } => {}
            Match::Tcp(t) => {
                join(vec![whole.and(&proto(6, six))?], false)?;
                join(both(&ports(&t.sport, 16)?, &ports(&t.dport, 0)?)?, false)?;
                if t.flags.0 != 0 {
                    let (mask, value) = (u32::from(t.flags.0) << 16, u32::from(t.flags.1) << 16);
                    join(vec![Cube::of(Place::Word(port + 12), mask, value)], t.invert_flags)?;
                }
                if t.option.is_some() {
                    join(vec![Cube::of(Place::Other(names.other("--tcp-option")), 1, 1)], false)?;
                }
            }
            Match::Udp(s, d) => {
                join(vec![whole.and(&proto(17, six))?], false)?;
                join(both(&ports(s, 16)?, &ports(d, 0)?)?, false)?;
            }
            Match::Multiport { kind, ports, invert } => {
                let side = |shift: u32| -> Any {
                    let one = |p: &penstock_lang::iptables::Ports| {
                        range(Place::Word(port), shift, 16, p.from.into(), p.to.into())
                    };
                    ports.iter().flat_map(one).collect()
                };
                let fits = match kind {
                    PortKind::Source => side(16),
                    PortKind::Destination => side(0),
                    PortKind::Either => side(16).into_iter().chain(side(0)).collect(),
                };
                join(vec![whole.clone()], false)?;
                join(fits, *invert)?;
            }
            Match::Icmp { ty, code, invert } => {
                let fits = match ty {
                    255 => vec![Cube::all()],
                    ty => {
                        let codes = range(Place::Word(port), 16, 8, code.0.into(), code.1.into());
                        both(&codes, &[Cube::of(Place::Word(port), 0xff00_0000, u32::from(*ty) << 24)])?
                    }
                };
                join(vec![whole.clone()], false)?;
                join(fits, *invert)?;
            }
            Match::Length { min, max, invert } => {
                let from =
                    |n: u32| if n <= 28 { vec![Cube::all()] } else { vec![Cube::of(Place::Long(n), 1, 1)] };
                let fits = both(&from((*min).into()), &none_of(&from(u32::from(*max) + 1))?)?;
                join(fits, *invert)?;
            }
            Match::Ttl { ttl, mode } => {
                let (place, shift) = if six { (Place::Word(4), 0) } else { (Place::Word(8), 24) };
                let ttl = u32::from(*ttl);
                let fits = match mode {
                    -1 if ttl == 0 => Vec::new(),
                    -1 => range(place, shift, 8, 0, ttl - 1),
                    1 if ttl == 255 => Vec::new(),
                    1 => range(place, shift, 8, ttl + 1, 255),
                    _ => range(place, shift, 8, ttl, ttl),
                };
                join(fits, *mode == 2)?;
            }
            Match::Conntrack(c) if states(c).is_some() => {
                let (bits, invert) = states(c).unwrap_or_default();
                join(of_states(bits), invert)?;
            }
            Match::Iprange { src, dst } if !six => {
                for (side, off) in [(src, 12), (dst, 16)] {
                    if let Some((from, to, invert)) = side {
                        join(range(Place::Word(off), 0, 32, *from as u32, *to as u32), *invert)?;
                    }
                }
            }
            other => {
                let alone = Rule { matches: vec![other.clone()], ..Rule::default() };
                let text = print_target(&alone, family, penstock_model::Kernel::default()).trim().to_owned();
                join(vec![Cube::of(Place::Other(names.other(&text)), 1, 1)], false)?;
            }
        }
    }
    Some(all)
}

/// The states that a match asks for, where it asks for nothing else: bits of [`state`], and whether it is inverted.
pub(in crate::explain) fn states(c: &Conntrack) -> Option<(u8, bool)> {
    let alone = Conntrack { states: None, as_state: false, ..c.clone() } == Conntrack::default();
    c.states.filter(|s| alone && s.0 & (state::SNAT | state::DNAT) == 0)
}

/// Whether a number of [`super::super::cube::STATES`] is among such bits.
pub(in crate::explain) fn has_state(bits: u8, number: u32) -> bool {
    let all = [state::NEW, state::UNTRACKED, state::ESTABLISHED, state::RELATED, state::INVALID];
    bits & all[number.min(4) as usize] != 0
}

fn of_states(bits: u8) -> Any {
    in_states(|n| has_state(bits, n))
}

fn proto(protocol: u8, six: bool) -> Cube {
    match six {
        true => Cube::of(Place::Word(4), 0xff00, u32::from(protocol) << 8),
        false => Cube::of(Place::Word(8), 0x00ff_0000, u32::from(protocol) << 16),
    }
}

fn address(addr: &AddrMatch, off: i32, six: bool) -> Any {
    if !six {
        return vec![Cube::of(Place::Word(off), addr.mask as u32, addr.addr as u32)];
    }
    Cube::bytes(off, &addr.addr.to_be_bytes(), &addr.mask.to_be_bytes()).into_iter().collect()
}

/// The devices a name, or the begin of one, means.
fn devices(input: &Iface, names: &Names) -> Any {
    if input.wildcard && input.name.is_empty() {
        return vec![Cube::all()];
    }
    names.numbers(input).into_iter().map(|n| Cube::of(Place::Input, 0xffff, n)).collect()
}
