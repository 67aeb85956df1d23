//! `radvd`: the program that tells a link of its router (RFC 4861 section 6.2).
//!
//! Follows: radvd 2.19 `radvd.c` `setup_iface_foo`, `kickoff_adverts`, `timer_handler`, `stop_advert_foo`; `process.c` `process_rs`; `send.c`
//! `send_ra_forall`, `send_ra`, `build_ra_options`; `interface.c` `reschedule_iface`, `config_interface`.
//! Differs: it answers at once; its own messages do not come back to it, from which a machine that does not forward would make addresses.

pub(crate) mod conf;

use crate::six::icmp::{ROUTER_ADVERTISEMENT, ROUTER_SOLICITATION};
use crate::six::{ALL_NODES, is_link_local, network};
use crate::{Host, HostCx, Timer};
use conf::{Interface, Names, Prefix};
use penstock_model::{Rng, Span, Time};
use penstock_packet::{Icmp, Ipv6};
use std::net::{IpAddr, Ipv6Addr};

/// `MAX_INITIAL_RTR_ADVERTISEMENTS`, and the longest wait between them, seconds.
const FIRST: u32 = 3;
const FIRST_WAIT: f64 = 16.0;
/// `IFACE_SETUP_DELAY`, s.
const SETUP_DELAY: f64 = 1.0;
/// `MAX_RA_DELAY_SECONDS`.
const DELAY: f64 = 0.5;
/// `MIN_AdvValidLifetime`, s.
const MIN_VALID: u32 = 7200;

/// The program, with what it says on each device.
#[derive(Default)]
pub(crate) struct Radvd {
    links: Vec<Link>,
    dice: Option<Rng>,
}

struct Link {
    conf: Interface,
    ifindex: u32,
    /// It is up and has an address to speak from.
    ready: bool,
    /// Advertisements at first.
    count: u32,
    last_multicast: Time,
    last: Time,
    next: Option<Time>,
    /// The end.
    ceases: bool,
}

fn span(seconds: f64) -> Span {
    Span::from_ns((seconds * 1e9) as i64)
}

impl Host {
    /// Whether it runs.
    pub(crate) fn radvd_runs(&self) -> bool {
        !self.radvd.links.is_empty()
    }
    /// It begins, or begins anew with another file.
    ///
    /// # Errors
    /// The device that is not there, where the file does not allow that.
    pub(crate) fn radvd_begin(&mut self, all: Vec<Interface>, now: Time) -> Result<(), String> {
        let mut links = Vec::new();
        for conf in all {
            let ifindex = self.ifindex(&conf.name);
            let up = ifindex.and_then(|i| self.device(i)).is_some_and(|d| d.up && !d.loopback);
            if !up && !conf.ignore_missing {
                return Err(format!("interface {} does not exist or is not set up properly", conf.name));
            }
            links.push(Link {
                conf,
                ifindex: ifindex.unwrap_or(0),
                ready: false,
                count: 0,
                last_multicast: now,
                last: now,
                next: Some(now),
                ceases: false,
            });
        }
        self.timers.retain(|timer| timer != Timer::Radvd);
        self.radvd.links = links;
        self.timers.insert(now, Timer::Radvd);
        Ok(())
    }
    /// It ends (`SIGTERM`), with a last word on each device. Whether it ran.
    pub(crate) fn radvd_end(&mut self, now: Time) -> bool {
        self.radvd.links.iter_mut().for_each(|link| (link.ceases, link.next) = (true, Some(now)));
        self.timers.retain(|timer| timer != Timer::Radvd);
        if self.radvd_runs() {
            self.timers.insert(now, Timer::Radvd);
        }
        self.radvd_runs()
    }
    /// It is gone without a word (`SIGKILL`). Whether it ran.
    pub(crate) fn radvd_is_gone(&mut self) -> bool {
        self.timers.retain(|timer| timer != Timer::Radvd);
        let mut left = Vec::new();
        for link in &self.radvd.links {
            if let Some(device) = self.devices.get_mut(link.ifindex)
                && std::mem::take(&mut device.six.hears_routers)
            {
                left.push(link.ifindex);
            }
        }
        left.into_iter().for_each(|ifindex| self.leave6(ifindex, crate::six::router::ALL_ROUTERS));
        !std::mem::take(&mut self.radvd.links).is_empty()
    }
    /// A device came up, or its addresses are others (`touch_iface`).
    pub(crate) fn radvd_touched(&mut self, ifindex: u32, now: Time) {
        if !self.radvd_runs() {
            return;
        }
        let Some(name) = self.device(ifindex).map(|d| d.name.clone()) else { return };
        let Some(link) = self.radvd.links.iter_mut().find(|l| l.conf.name == name) else { return };
        (link.ifindex, link.ready, link.count) = (ifindex, false, 0);
        link.next = Some(now + span(SETUP_DELAY));
        self.radvd_timer();
    }
    fn radvd_timer(&mut self) {
        self.timers.retain(|timer| timer != Timer::Radvd);
        if let Some(at) = self.radvd.links.iter().filter_map(|l| l.next).min() {
            self.timers.insert(at, Timer::Radvd);
        }
    }
    pub(crate) fn radvd_timer_fired(&mut self, cx: &mut HostCx<'_>) {
        for n in 0..self.radvd.links.len() {
            let link = &mut self.radvd.links[n];
            if link.next.is_none_or(|at| at > cx.now) {
                continue;
            }
            link.next = None;
            if !link.ready && !link.ceases {
                self.radvd_set_up(n);
            }
            let link = &self.radvd.links[n];
            if link.ceases && link.conf.unicast_only || !link.ready {
                continue;
            }
            self.radvd_tell(n, None, cx);
            if !self.radvd.links[n].ceases {
                self.radvd_later(n, cx.now);
            }
        }
        if self.radvd.links.iter().all(|l| l.ceases) {
            self.radvd_is_gone();
        }
        self.radvd_timer();
    }
    /// `setup_iface`, `config_interface`: the device may speak, and goes by what it will tell others.
    fn radvd_set_up(&mut self, n: usize) {
        let conf = &self.radvd.links[n].conf;
        let Some(ifindex) = self.ifindex(&conf.name) else { return };
        let device = &mut self.devices[ifindex];
        if !device.up || !device.addresses6.iter().any(|a| is_link_local(a.addr)) {
            return;
        }
        let joins = !std::mem::replace(&mut device.six.hears_routers, true);
        if conf.link_mtu > 0 && conf.link_mtu <= device.mtu {
            device.six.conf.mtu = conf.link_mtu;
        }
        if conf.hop_limit > 0 {
            device.six.conf.hop_limit = conf.hop_limit;
        }
        let (retrans, reachable) = (conf.retrans, conf.reachable);
        self.neigh.told_six(ifindex, retrans, reachable, self.hz);
        self.six.fib.invalidate();
        let link = &mut self.radvd.links[n];
        (link.ifindex, link.ready) = (ifindex, true);
        if joins {
            self.join6(ifindex, crate::six::router::ALL_ROUTERS);
        }
    }
    /// `rand_between`, `reschedule_iface`.
    fn radvd_later(&mut self, n: usize, now: Time) {
        let part = self.radvd_draw();
        let link = &mut self.radvd.links[n];
        let (min, max) = link.conf.every;
        let wait = if link.count < FIRST { FIRST_WAIT.min(max) } else { (max - min) * part + min };
        link.next = Some(now + span(wait));
    }
    /// From 0 to 1.
    fn radvd_draw(&mut self) -> f64 {
        let (seed, name) = (self.seed, &self.name);
        let rng = self.radvd.dice.get_or_insert_with(|| Rng::named(seed, &format!("host:{name}/radvd")));
        f64::from(rng.below(1 << 31)) / f64::from(1u32 << 31)
    }
    /// `process_rs`: somebody asks.
    pub(crate) fn radvd_hears(
        &mut self,
        ifindex: u32,
        h: Ipv6,
        i: Icmp,
        options: &[u8],
        cx: &mut HostCx<'_>,
    ) {
        if i.ty != ROUTER_SOLICITATION {
            return;
        }
        let Some(n) = self.radvd.links.iter().position(|l| l.ifindex == ifindex && !l.ceases) else { return };
        if !self.radvd.links[n].ready {
            self.radvd_set_up(n);
        }
        let nameless = h.src.is_unspecified();
        if !self.radvd.links[n].ready || !well_formed(options, nameless) {
            return;
        }
        let delay = DELAY * self.radvd_draw();
        let link = &mut self.radvd.links[n];
        let since = cx.now - link.last_multicast;
        if link.conf.unicast_only || link.conf.answers_one && !nameless {
            self.radvd_tell(n, Some(h.src), cx);
        } else if since < span(link.conf.min_delay) {
            let wait = span(link.conf.min_delay) - since + span(delay);
            link.next = Some(
                cx.now + if link.count < FIRST { span(FIRST_WAIT.min(link.conf.every.1)) } else { wait },
            );
        } else {
            self.radvd_tell(n, None, cx);
            self.radvd_later(n, cx.now);
        }
        self.radvd_timer();
    }
    /// `send_ra_forall`: to one, or to all.
    fn radvd_tell(&mut self, n: usize, to: Option<Ipv6Addr>, cx: &mut HostCx<'_>) {
        let link = &mut self.radvd.links[n];
        link.count = (link.count + 1).min(FIRST);
        let clients: Vec<Ipv6Addr> =
            link.conf.clients.iter().filter(|c| to.is_none_or(|to| **c == to)).copied().collect();
        if !link.conf.clients.is_empty() {
            return clients.into_iter().for_each(|client| self.radvd_send(n, Some(client), cx));
        }
        // Nothing gets to one without a name.
        let to_one = to.is_some_and(|to| !to.is_unspecified());
        if to_one || to.is_none() && !link.conf.unicast_only {
            self.radvd_send(n, to, cx);
        }
    }
    /// `send_ra`.
    fn radvd_send(&mut self, n: usize, to: Option<Ipv6Addr>, cx: &mut HostCx<'_>) {
        let now = cx.now;
        let link = &mut self.radvd.links[n];
        if !link.conf.send {
            return;
        }
        if to.is_none() {
            link.last_multicast = now;
        }
        let seconds = u32::try_from((now - std::mem::replace(&mut link.last, now)).as_ns() / 1_000_000_000)
            .unwrap_or(0);
        for p in link.conf.prefixes.iter_mut().filter(|p| p.decrements && p.preferred > 0) {
            if !(link.ceases && p.deprecates) {
                (p.valid, p.preferred) =
                    (p.valid.saturating_sub(seconds), p.preferred.saturating_sub(seconds));
            }
        }
        let (ifindex, ceases) = (link.ifindex, link.ceases);
        let conf = link.conf.clone();
        let Some(device) = self.devices.get(ifindex) else { return };
        let there = |a: &&Ipv6Addr| device.addresses6.iter().any(|own| own.addr == **a);
        let src = match conf.sources.is_empty() {
            true => device.addresses6.iter().map(|a| a.addr).find(|a| is_link_local(*a)),
            false => conf.sources.iter().find(there).copied(),
        };
        let Some(src) = src else { return };
        let flags =
            u16::from(conf.managed) << 7 | u16::from(conf.other) << 6 | u16::from(conf.home_agent) << 5;
        let flags = flags | u16::from(conf.pref) << 3;
        let lifetime = if ceases { 0 } else { conf.lifetime };
        let l4 = Icmp::new(ROUTER_ADVERTISEMENT, 0, u16::from(conf.hop_limit) << 8 | flags, lifetime);
        let times = [conf.reachable.to_be_bytes(), conf.retrans.to_be_bytes()].concat();
        // With the headers of the frame, of IP and of the message itself.
        let room = conf.ra_mtu.saturating_sub(14 + 40 + 16) as usize;
        let options = self.radvd_options(&conf, ifindex, ceases);
        let mut rest = options.as_slice();
        loop {
            let (mut message, mut count) = (times.clone(), 0);
            while let Some((option, behind)) = rest.split_first() {
                if count > 0 && 8 + message.len() + option.len() > room {
                    break;
                }
                message.extend(option);
                (rest, count) = (behind, count + 1);
            }
            self.ndisc_send(ifindex, src, to.unwrap_or(ALL_NODES), l4, Some(&message), cx);
            if rest.is_empty() {
                return;
            }
        }
    }
    /// `build_ra_options`.
    fn radvd_options(&self, conf: &Interface, ifindex: u32, ceases: bool) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for p in conf.prefixes.iter().filter(|p| !p.decrements || p.preferred > 0) {
            let own = |name: &str| self.devices.iter().find(|d| d.name == name);
            let base = p.base.as_deref().map(own).unwrap_or_default();
            let from = if p.addr.is_unspecified() { self.devices.get(ifindex) } else { None };
            if p.base.is_none() && from.is_none() {
                all.push(prefix_option(p, p.addr, p.len, ceases));
            }
            for device in [base, from].into_iter().flatten() {
                for a in device.addresses6.iter().filter(|a| !is_link_local(a.addr)) {
                    let IpAddr::V6(prefix) = network(a.addr, a.len).addr else { continue };
                    all.push(prefix_option(p, prefix, a.len, ceases));
                }
            }
        }
        for r in &conf.routes {
            let lifetime = if ceases && r.removes { 0 } else { r.lifetime };
            all.push(option(24, &[&[r.len, r.pref << 3], &lifetime.to_be_bytes()[..], &r.addr.octets()]));
        }
        let names = |kind: u8, n: &Names| {
            let lifetime = if ceases && n.flushes { 0 } else { n.lifetime };
            option(kind, &[&[0, 0], &lifetime.to_be_bytes()[..], &n.bytes])
        };
        all.extend(conf.rdnss.iter().map(|n| names(25, n)));
        all.extend(conf.dnssl.iter().map(|n| names(31, n)));
        if conf.link_mtu > 0 {
            all.push(option(5, &[&[0, 0], &conf.link_mtu.to_be_bytes()[..]]));
        }
        if conf.source_mac
            && let Some(device) = self.devices.get(ifindex)
        {
            all.push(option(1, &[&device.mac]));
        }
        if conf.interval {
            // Those below a fifth of a second with some leeway (RFC 6275 section 7.3).
            let every = if conf.every.1 < 0.2 { conf.every.1 + 0.02 } else { conf.every.1 };
            all.push(option(7, &[&[0, 0], &((1_000.0 * every) as u32).to_be_bytes()[..]]));
        }
        if let Some((preference, lifetime, mobile)) = conf.agent
            && (mobile || preference != 0 || lifetime != conf.lifetime)
        {
            let flags = [if mobile { 0x80 } else { 0 }, 0];
            all.push(option(8, &[&flags, &preference.to_be_bytes(), &lifetime.to_be_bytes()]));
        }
        all
    }
}

/// An option of these parts, filled up to whole units of eight bytes.
fn option(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![kind, 0];
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes[1] = (bytes.len() / 8) as u8;
    bytes
}

fn prefix_option(p: &Prefix, prefix: Ipv6Addr, len: u8, ceases: bool) -> Vec<u8> {
    let (valid, preferred) = match ceases && p.deprecates {
        //= RFC 4862 section 5.5.3 e
        true => (p.valid.min(MIN_VALID), 0),
        false => (p.valid, p.preferred),
    };
    option(
        3,
        &[&[len, p.flags], &valid.to_be_bytes()[..], &preferred.to_be_bytes(), &[0; 4], &prefix.octets()],
    )
}

/// Whether the options of a question end where it does; who has no name has no hardware address to tell either.
fn well_formed(mut rest: &[u8], nameless: bool) -> bool {
    while !rest.is_empty() {
        let len = 8 * usize::from(rest.get(1).copied().unwrap_or(0));
        if len == 0 || len > rest.len() || rest[0] == 1 && nameless {
            return false;
        }
        rest = &rest[len..];
    }
    true
}
