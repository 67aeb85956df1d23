//! Answers for addresses of others: proxy ARP and proxies of neighbour discovery.
//!
//! Follows: linux v6.12 `net/ipv4/arp.c` `arp_fwd_proxy`, `arp_fwd_pvlan`; `net/core/neighbour.c` `pneigh_lookup`, `pneigh_enqueue`, `neigh_proxy_process`;
//! `net/ipv6/ndisc.c` `pndisc_constructor`, `pndisc_is_router`.

use crate::neigh::{Parm, Proxy};
use crate::route::{Hop, Key, RouteKind};
use crate::{Effect, Host, HostCx, Timer, timer};
use penstock_model::{Rng, Time};
use penstock_packet::Packet;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Questions that wait for their answers, of one family (`proxy_queue`, `proxy_timer`).
#[derive(Default)]
pub(crate) struct Waiting {
    /// The tick of each, and its frame; in the order they came.
    queue: VecDeque<(i64, Packet)>,
    /// The tick the timer was set for, and when it goes off.
    timer: Option<(i64, Time)>,
    /// Draws how long each waits, from when one does.
    dice: Option<Rng>,
}

impl Waiting {
    /// The questions.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.queue.iter().map(|(_, packet)| packet)
    }
}

impl Host {
    /// The entry for an address on a device (`pneigh_lookup`).
    pub(crate) fn proxy_of(&self, ifindex: u32, addr: IpAddr) -> Option<&Proxy> {
        self.proxies.iter().find(|p| p.addr == addr && (p.ifindex == ifindex || p.ifindex == 0))
    }
    /// Puts an entry in. Of IPv6 the device then hears who asks for the address.
    pub(crate) fn add_proxy(&mut self, new: Proxy) {
        if let IpAddr::V6(addr) = new.addr {
            self.devices[new.ifindex].six.join(addr);
            self.join6(new.ifindex, crate::six::solicited_node(addr));
        }
        self.proxies.push(new);
    }
    /// Takes out the entries that `goes` names; how many those were.
    pub(crate) fn remove_proxies(&mut self, goes: impl Fn(&Host, &Proxy) -> bool) -> usize {
        let all = std::mem::take(&mut self.proxies);
        let (gone, stays): (Vec<_>, Vec<_>) = all.into_iter().partition(|p| goes(self, p));
        self.proxies = stays;
        for proxy in &gone {
            if let IpAddr::V6(addr) = proxy.addr {
                if let Some(device) = self.devices.get_mut(proxy.ifindex) {
                    device.six.leave(addr);
                }
                self.leave6(proxy.ifindex, crate::six::solicited_node(addr));
            }
        }
        gone.len()
    }

    /// Whether ARP answers for an address that `hop` leads to.
    //= linux v6.12 net/ipv4/arp.c arp_process, arp_fwd_proxy, arp_fwd_pvlan; net/ipv4/route.c __mkroute_input for what is not IP
    pub(crate) fn answers_for(&self, ifindex: u32, asker: Ipv4Addr, target: Ipv4Addr, hop: &Hop) -> bool {
        if hop.kind != Some(RouteKind::Unicast) || !self.forwards_from(ifindex) {
            return false;
        }
        if hop.oif == ifindex {
            return asker != target && self.conf_max(ifindex, "proxy_arp_pvlan") > 0;
        }
        let medium = |ifindex: u32| self.conf_of(&self.devices[ifindex].name, "medium_id");
        let proxies = self.conf_max(ifindex, "proxy_arp") > 0
            && match medium(ifindex) {
                0 => true,
                -1 => false,
                own => !matches!(medium(hop.oif), out if out == own || out == -1),
            };
        proxies || self.proxy_of(ifindex, target.into()).is_some()
    }
    /// Whether neighbour discovery answers for an address on a device, and whether as a router.
    pub(crate) fn answers_for6(&self, ifindex: u32, target: Ipv6Addr) -> Option<bool> {
        let device = &self.devices[ifindex];
        if !device.six.conf.forwarding || !self.proxies_ndp("all") && !self.proxies_ndp(&device.name) {
            return None;
        }
        self.proxy_of(ifindex, target.into()).map(|p| p.router)
    }
    /// Whether this machine answers for an address of another, where somebody asks for it on the link of a device.
    pub fn answers_for_other(&self, ifindex: u32, addr: IpAddr) -> bool {
        match addr {
            IpAddr::V4(addr) => {
                let hop = self.fib.search_key(&Key { iif: ifindex, ..Key::to(addr) });
                self.answers_for(ifindex, Ipv4Addr::UNSPECIFIED, addr, &hop)
            }
            IpAddr::V6(addr) => self.answers_for6(ifindex, addr).is_some(),
        }
    }
    /// `net.ipv6.conf.NAME.proxy_ndp`.
    pub(crate) fn proxies_ndp(&self, name: &str) -> bool {
        let kept = self.sysctl.kept.get(&format!("net.ipv6.conf.{name}.proxy_ndp"));
        kept.is_some_and(|v| v != "0")
    }

    /// `pneigh_enqueue`: a question waits for up to `proxy_delay`. Where more than `proxy_qlen` of a device wait it is lost.
    pub(crate) fn proxy_waits(&mut self, six: bool, frame: Packet, cx: &mut HostCx<'_>) {
        let ifindex = frame.iif;
        let delay = self.neigh.ticks(six, ifindex, Parm::ProxyDelay);
        let most = self.neigh.parm(six, ifindex, Parm::ProxyQueue);
        let now = timer::jiffies(self.kernel, cx.now);
        let (seed, name) = (self.seed, &self.name);
        let waiting = &mut self.waiting[usize::from(six)];
        let dice = waiting.dice.get_or_insert_with(|| Rng::named(seed, &format!("host:{name}/proxy/{six}")));
        let due = now + if delay > 0 { i64::from(dice.below(delay.min(1 << 31) as u32)) } else { 0 };
        if waiting.queue.iter().filter(|q| q.1.iif == ifindex).count() as i64 > most {
            return self.discard(frame, "neigh", "proxy-queue", cx);
        }
        waiting.queue.push_back((due, frame));
        let first = waiting.timer.map_or(due, |(set, _)| set.min(due));
        self.set_proxy_timer(six, Some(first), cx.now);
    }
    fn set_proxy_timer(&mut self, six: bool, expires: Option<i64>, now: Time) {
        let kernel = self.kernel;
        let waiting = &mut self.waiting[usize::from(six)];
        if let Some((_, at)) = waiting.timer.take() {
            self.timers.remove(at, Timer::Proxy(six));
        }
        if let Some(expires) = expires {
            let at = timer::fires(kernel, now, expires);
            waiting.timer = Some((expires, at));
            self.timers.insert(at, Timer::Proxy(six));
        }
    }
    /// `neigh_proxy_process`.
    pub(crate) fn proxy_timer_fired(&mut self, six: bool, cx: &mut HostCx<'_>) {
        let now = timer::jiffies(self.kernel, cx.now);
        let waiting = &mut self.waiting[usize::from(six)];
        waiting.timer = None;
        let (due, later) = std::mem::take(&mut waiting.queue).into_iter().partition(|q| q.0 <= now);
        waiting.queue = later;
        let next = waiting.queue.iter().map(|q| q.0).min();
        self.set_proxy_timer(six, next, cx.now);
        let due: VecDeque<(i64, Packet)> = due;
        for (_, frame) in due {
            let ifindex = frame.iif;
            if !self.devices.get(ifindex).is_some_and(|d| d.up) {
                self.discard(frame, "neigh", "device-down", cx);
            } else if six {
                self.ndisc_redo(frame, cx);
            } else {
                self.arp_process(ifindex, frame, true, cx);
            }
        }
    }
    /// `pneigh_queue_purge`: a device goes down, and what waits on any is lost.
    pub(crate) fn forget_waiting(&mut self) {
        for six in [false, true] {
            self.set_proxy_timer(six, None, Time::ZERO);
            let lost = std::mem::take(&mut self.waiting[usize::from(six)].queue);
            for (_, frame) in lost {
                let ifindex = frame.iif;
                self.pending.push(Effect::Dropped {
                    packet: frame,
                    ifindex,
                    place: "neigh",
                    reason: "device-down",
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Net, echo, routed};
    use penstock_model::{Kernel, Time};
    use penstock_packet::L3;

    /// The client thinks that the server is on its own network, after commands on the router: when its question is answered, ms, and whether its ping is.
    fn asks(router: &[&str], target: &str) -> (Option<i64>, bool) {
        let mut net = routed(Kernel::V6_12);
        let route = net.hosts[0].exec("ip route replace 10.0.2.0/24 dev eth0", Time::ZERO);
        assert_eq!((route.status, route.stderr.as_str()), (0, ""));
        for line in router {
            let out = net.hosts[1].exec(line, Time::ZERO);
            assert_eq!((out.status, out.stderr.as_str()), (0, ""), "{line}");
        }
        assert_eq!(net.hosts[1].unsimulated(), Vec::<String>::new());
        net.send(0, echo(target)).unwrap();
        net.run(Time::from_ns(1_000_000_000));
        let mac = net.hosts[1].devices()[2].mac;
        let answer = |f: &&(Time, usize, _)| f.1 == 1 && told(&f.2) == Some((target.to_owned(), mac));
        let at = net.frames.iter().find(answer).map(|f| f.0.as_ns() / 1_000_000);
        (at, net.delivered.iter().any(|d| d.0 == 0))
    }
    /// Whose address an answer tells.
    fn told(frame: &penstock_packet::Skb) -> Option<(String, [u8; 6])> {
        match frame.l3 {
            L3::Arp(a) if a.op == 2 => Some((a.spa.to_string(), a.sha)),
            _ => None,
        }
    }

    #[test]
    fn a_router_answers_for_who_is_behind_another_device() {
        const ON: &str = "sysctl -qw net.ipv4.conf.eth0.proxy_arp=1";
        assert_eq!(asks(&[], "10.0.2.1"), (None, false));
        let (at, answered) = asks(&[ON], "10.0.2.1");
        assert!(at.is_some_and(|ms| ms <= 804) && answered, "{at:?} {answered}");
        assert!(at.is_some_and(|ms| ms > 0), "it waits: {at:?}");
        let at_once = "sysctl -qw net.ipv4.neigh.eth0.proxy_delay=0";
        assert_eq!(asks(&[ON, at_once], "10.0.2.1"), (Some(0), true));
        assert_eq!(asks(&["sysctl -qw net.ipv4.conf.all.proxy_arp=1", at_once], "10.0.2.1"), (Some(0), true));
        // For all behind it, whoever is there; for nobody without a way, and not without forwarding.
        assert_eq!(asks(&[ON, at_once], "10.0.2.99"), (Some(0), false));
        assert_eq!(asks(&[ON, at_once, "ip route del 10.0.2.0/24"], "10.0.2.1"), (None, false));
        assert_eq!(asks(&[ON, at_once, "sysctl -qw net.ipv4.ip_forward=0"], "10.0.2.1"), (None, false));
        // Two devices of one medium have no need of it.
        let medium = |n: u8| format!("sysctl -qw net.ipv4.conf.eth{n}.medium_id=7");
        assert_eq!(asks(&[ON, at_once, &medium(0)], "10.0.2.1"), (Some(0), true));
        assert_eq!(asks(&[ON, at_once, &medium(0), &medium(1)], "10.0.2.1"), (None, false));
    }

    #[test]
    fn an_entry_is_for_one_address() {
        let at_once = "sysctl -qw net.ipv4.neigh.eth0.proxy_delay=0";
        let entry = "ip neigh add proxy 10.0.2.1 dev eth0";
        assert_eq!(asks(&[entry, at_once], "10.0.2.1"), (Some(0), true));
        assert_eq!(asks(&[entry, at_once], "10.0.2.2"), (None, false));
        assert_eq!(asks(&["ip neigh add proxy 10.0.2.1 dev eth1", at_once], "10.0.2.1"), (None, false));
        let gone = "ip neigh del proxy 10.0.2.1 dev eth0";
        assert_eq!(asks(&[entry, at_once, gone], "10.0.2.1"), (None, false));
    }

    #[test]
    fn ports_that_may_not_talk_to_each_other_do_so_by_the_router() {
        let at_once = "sysctl -qw net.ipv4.neigh.eth0.proxy_delay=0";
        let answers = |lines: &[&str]| asks(lines, "10.0.1.77").0.is_some();
        assert!(!answers(&["sysctl -qw net.ipv4.conf.eth0.proxy_arp=1", at_once]));
        assert!(answers(&["sysctl -qw net.ipv4.conf.eth0.proxy_arp_pvlan=1", at_once]));
    }

    #[test]
    fn questions_wait_in_a_queue_that_ends() {
        let answered = |length: &str| {
            let mut net = routed(Kernel::V6_12);
            let mut on =
                |host: usize, line: &str| assert_eq!(net.hosts[host].exec(line, Time::ZERO).status, 0);
            on(0, "ip route replace 10.0.2.0/24 dev eth0");
            on(1, "sysctl -qw net.ipv4.conf.eth0.proxy_arp=1");
            on(1, length);
            for n in 1..=9 {
                net.send(0, echo(&format!("10.0.2.{n}"))).unwrap();
            }
            // Nobody loses sight of them.
            let lost = net.dropped.iter().filter(|d| d.2 == "proxy-queue").count();
            assert_eq!(net.hosts[1].held_packets() as usize, 9 - lost);
            net.run(Time::from_ns(900_000_000));
            assert!(net.hosts[1].waiting[0].queue.is_empty());
            let told = net.frames.iter().filter(|f| f.1 == 1 && told(&f.2).is_some()).count();
            (told, net.dropped.iter().filter(|d| d.2 == "proxy-queue").count())
        };
        assert_eq!(answered("sysctl -qw net.ipv4.neigh.eth0.proxy_qlen=64"), (9, 0));
        assert_eq!(answered("sysctl -qw net.ipv4.neigh.eth0.proxy_qlen=3"), (4, 5));
        // A device that goes down takes along what waits, on others too.
        let mut net: Net = routed(Kernel::V6_12);
        net.hosts[0].exec("ip route replace 10.0.2.0/24 dev eth0", Time::ZERO);
        net.hosts[1].exec("sysctl -qw net.ipv4.conf.eth0.proxy_arp=1", Time::ZERO);
        net.send(0, echo("10.0.2.1")).unwrap();
        net.hosts[1].exec("ip link set eth1 down", Time::ZERO);
        net.run(Time::from_ns(900_000_000));
        assert!(net.frames.iter().all(|f| told(&f.2).is_none()));
    }
}
