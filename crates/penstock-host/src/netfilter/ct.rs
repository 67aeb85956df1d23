//! The machine's connections for the action `ct`: what it asks, done to a packet.
//!
//! Follows: linux v6.12 `net/sched/act_ct.c` `tcf_ct_act`, `tcf_ct_skb_nfct_cached`; `net/netfilter/nf_nat_ovs.c` `nf_ct_nat`,
//! `nf_ct_nat_execute`; `nf_conntrack_labels.c` `nf_connlabels_replace`.

use super::conntrack::{Tracking, status};
use super::nat::{Range, Table, of_source};
use super::{Devices, Dice, Fate, Hook, Netfilter};
use penstock_lang::iptables::extension::state;
use penstock_model::{Kernel, Rng, Time};
use penstock_packet::{L3, L4, Skb, Tracked};
use penstock_sched::act::{Connections, CtAsk, Translation};
use std::any::Any;

/// The connections on their way to the actions and back.
pub(crate) struct Lent {
    tracking: Tracking,
    dice: Dice,
}

impl Default for Lent {
    fn default() -> Lent {
        Lent { tracking: Tracking::default(), dice: Dice(Rng::named(0, "netfilter")) }
    }
}

/// Connections of their own, of which there are none yet, for whoever has actions and no machine.
pub fn connections(kernel: Kernel) -> Box<dyn Connections> {
    let mut lent = Lent::default();
    lent.tracking.set_hz(kernel.hz());
    Box::new(lent)
}

impl Lent {
    /// What was lent and comes back; none of ours.
    pub(crate) fn of(connections: Box<dyn Connections>) -> Option<Box<Lent>> {
        let any: Box<dyn Any> = connections;
        any.downcast().ok()
    }
    /// The packet's connection, where it has one that will do (`tcf_ct_skb_nfct_cached`).
    fn cached(&mut self, skb: &Skb, ask: &CtAsk) -> Option<Tracked> {
        let known = skb.rare().ct?;
        let id = known.id?;
        let zone = self.tracking.get(Some(id))?.tuples[0].zone;
        let turned = ask.force && known.reply;
        if zone == ask.zone && !turned {
            return Some(known);
        }
        if zone == ask.zone {
            self.tracking.force_out(id);
        }
        self.let_go(known);
        None
    }
    /// `nf_ct_nat`.
    fn translate(
        &mut self,
        skb: &mut Skb,
        known: Tracked,
        asked: &Translation,
        commit: bool,
        now: Time,
    ) -> bool {
        // Addresses to choose from are those of IPv4 (`Act::unsimulated`).
        if !matches!(skb.l3, L3::Ipv4(_)) && asked.addresses.is_some() {
            return true;
        }
        let status_of = |lent: &Lent| lent.tracking.get(known.id).map_or(0, |c| c.status);
        let before = status_of(self);
        let translated = before & (status::SRC_NAT | status::DST_NAT) != 0;
        let related = known.state == state::RELATED && !known.reply;
        let source = if known.state != state::NEW && translated && (!related || commit) {
            // As before; what comes back is turned back.
            (before & status::SRC_NAT != 0) != known.reply
        } else if asked.source || asked.destination {
            asked.source
        } else {
            return true;
        };
        let range = Range { addresses: asked.addresses, ports: asked.ports, ..Range::default() };
        if !self.execute(skb, known, Some(&range), source, now) {
            return false;
        }
        let after = status_of(self);
        if after & status::DST_NAT == 0 {
            return true;
        }
        if after & status::SRC_NAT != 0 {
            return self.execute(skb, known, Some(&range), !source, now);
        }
        known.reply || self.execute(skb, known, None, true, now)
    }
    /// `nf_ct_nat_execute`.
    fn execute(
        &mut self,
        skb: &mut Skb,
        known: Tracked,
        range: Option<&Range>,
        source: bool,
        now: Time,
    ) -> bool {
        let hook = if source { Hook::Input } else { Hook::Output };
        debug_assert_eq!(of_source(hook), source);
        let error = known.state == state::RELATED && matches!(skb.l4, L4::Icmp(_));
        if let Some(id) = known.id.filter(|_| !error && known.state != state::ESTABLISHED)
            && !self.tracking.is_decided(id, source)
        {
            let mut table = Table { tracking: &mut self.tracking, dice: &mut self.dice, now };
            match range.filter(|r| r.addresses.is_some()) {
                Some(range) => table.set_up(id, range, source),
                None => table.leave_as_is(id, source),
            }
        }
        let devices = Devices { input: "", output: "", fib: None, fib6: None, ports: None };
        self.tracking.translate(skb, known, hook, devices) == Fate::Accept
    }
}

impl Connections for Lent {
    fn track(&mut self, skb: &mut Skb, ask: &CtAsk, now: Time) -> bool {
        let known = match self.cached(skb, ask) {
            Some(known) => known,
            None => {
                let Some(known) = self.tracking.track_in(ask.zone, skb, now) else { return false };
                skb.rare_mut().ct = Some(known);
                if let Some(id) = known.id {
                    self.tracking.lingers(id, now);
                }
                known
            }
        };
        let Some(id) = known.id else { return true };
        if let Some(asked) = &ask.nat
            && !self.translate(skb, known, asked, ask.commit, now)
        {
            return false;
        }
        if ask.commit {
            if let Some(c) = self.tracking.get_mut(Some(id)) {
                let (mask, mark) = ask.mark;
                if mask != 0 {
                    c.mark = mark | c.mark & !mask;
                }
                let (mask, labels) = ask.labels;
                if mask != 0 {
                    c.labels = c.labels & !mask ^ labels;
                }
            }
            if !self.tracking.confirm(known, now) {
                return false;
            }
        }
        note(skb, &self.tracking);
        true
    }
    fn let_go(&mut self, known: Tracked) {
        if let (Some(id), false) = (known.id, known.reply) {
            self.tracking.let_go(id);
        }
    }
}

/// Notes on a packet what its connection has that filters look at.
fn note(skb: &mut Skb, tracking: &Tracking) {
    let Some(c) = skb.rare().ct.and_then(|known| tracking.get(known.id)) else { return };
    let (mark, zone, labels) = (c.mark, c.tuples[0].zone, c.labels);
    let rare = skb.rare_mut();
    (rare.ct_mark, rare.ct_zone, rare.ct_labels) = (Some(mark), zone, labels);
}

impl Netfilter {
    /// Hands the connections over, or takes them back.
    pub(crate) fn lend(&mut self, lent: &mut Lent) {
        std::mem::swap(&mut self.tracking, &mut lent.tracking);
        std::mem::swap(&mut self.dice, &mut lent.dice);
    }
    /// Notes on a packet that comes to filters what they may ask of its connection. The mark is told of a connection that the packet does not
    /// know yet, too.
    pub(crate) fn note_connection(&self, skb: &mut Skb, now: Time) {
        match skb.rare().ct {
            Some(known) if known.id.is_some() => note(skb, &self.tracking),
            _ => skb.rare_mut().ct_mark = self.connection_mark(skb, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Net, h4, ip, router, udp};
    use penstock_model::{Kernel, Span};
    use penstock_packet::{L4, Skb};

    /// The answer to a packet that has arrived.
    fn answer(skb: &Skb) -> Skb {
        let (h, L4::Udp(u)) = (h4(skb), skb.l4) else { panic!("{skb:?}") };
        let mut back = udp(&h.dst.to_string(), &h.src.to_string(), 200);
        back.l4 = L4::Udp(penstock_packet::Udp { sport: u.dport, dport: u.sport });
        back
    }
    fn listed(net: &mut Net) -> String {
        let now = net.now;
        net.hosts[1].exec("conntrack -L", now).stdout
    }
    fn later(net: &mut Net, s: i64) {
        let until = net.now + Span::from_secs(s);
        net.run(until);
    }

    #[test]
    fn a_source_is_translated_on_the_way_out_and_back_on_the_way_in() {
        let mut net = router(
            Kernel::V6_12,
            &[
                "ip addr add 10.0.2.77/24 dev eth1",
                "tc qdisc add dev eth1 clsact",
                "tc filter add dev eth1 egress protocol ip prio 1 matchall action ct commit nat src addr 10.0.2.77 port 4000-4010",
                "tc filter add dev eth1 ingress protocol ip prio 1 matchall action ct nat pipe",
            ],
        );
        net.send(0, udp("10.0.1.1", "10.0.2.1", 100)).unwrap();
        later(&mut net, 1);
        let (host, there) = net.delivered.remove(0);
        assert_eq!((host, h4(&there).src), (2, ip("10.0.2.77")));
        assert!(matches!(there.l4, L4::Udp(u) if (4000..=4010).contains(&u.sport)), "{:?}", there.l4);
        net.send(2, answer(&there)).unwrap();
        later(&mut net, 1);
        assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
        let (host, back) = net.delivered.remove(0);
        assert_eq!((host, h4(&back).dst, h4(&back).src), (0, ip("10.0.1.1"), ip("10.0.2.1")));
        assert!(matches!(back.l4, L4::Udp(u) if u.dport == 1000));
        let list = listed(&mut net);
        assert!(
            list.contains("src=10.0.1.1 dst=10.0.2.1 sport=1000 dport=2000 src=10.0.2.1 dst=10.0.2.77"),
            "{list}"
        );
        assert!(!list.contains("UNREPLIED"), "{list}");
    }

    #[test]
    fn filters_see_states_zones_marks_and_labels() {
        let mut net = router(
            Kernel::V6_12,
            &[
                "tc qdisc add dev eth0 clsact",
                "tc filter add dev eth0 ingress protocol ip prio 1 flower ct_state -trk action ct zone 5 pipe action goto chain 1",
                "tc filter add dev eth0 ingress chain 1 protocol ip prio 1 flower ct_state +trk ct_mark 7/0xf ct_label ff00/ff00 ct_zone 5 action drop",
                "tc filter add dev eth0 ingress chain 1 protocol ip prio 2 flower ct_state +trk+new action ct commit zone 5 mark 0x17/0xff label ff00/ff00",
            ],
        );
        net.send(0, udp("10.0.1.1", "10.0.2.1", 100)).unwrap();
        later(&mut net, 1);
        assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
        let list = listed(&mut net);
        assert!(list.contains("mark=23 zone=5 use=1"), "{list}");
        // From now on it has a mark.
        net.send(0, udp("10.0.1.1", "10.0.2.1", 100)).unwrap();
        later(&mut net, 1);
        assert_eq!((net.delivered.len(), net.dropped.as_slice()), (1, &[(1, "ingress", "filter")][..]));
    }

    #[test]
    fn what_nobody_commits_is_not_kept() {
        let mut net = router(
            Kernel::V6_12,
            &[
                "tc qdisc add dev eth0 clsact",
                "tc filter add dev eth0 ingress protocol ip prio 1 matchall action ct pipe action ct clear",
                "tc filter add dev eth0 egress protocol ip prio 1 matchall action ct",
            ],
        );
        for _ in 0..3 {
            net.send(0, udp("10.0.1.1", "10.0.2.1", 100)).unwrap();
        }
        later(&mut net, 1);
        assert_eq!(net.delivered.len(), 3, "{:?}", net.dropped);
        assert!(!listed(&mut net).contains("10.0.1.1"));
        assert_eq!(net.hosts[1].netfilter.tracking().connections().count(), 0);
    }

    #[test]
    fn force_begins_a_connection_anew() {
        let mut net = router(
            Kernel::V6_12,
            &[
                "tc qdisc add dev eth0 clsact",
                "tc qdisc add dev eth1 clsact",
                "tc filter add dev eth0 ingress protocol ip prio 1 matchall action ct commit",
                "tc filter add dev eth1 ingress protocol ip prio 1 matchall action ct pipe action ct commit force",
            ],
        );
        net.send(0, udp("10.0.1.1", "10.0.2.1", 100)).unwrap();
        later(&mut net, 1);
        let (_, there) = net.delivered.remove(0);
        assert!(
            listed(&mut net).contains("udp      17 29 src=10.0.1.1 dst=10.0.2.1"),
            "{}",
            listed(&mut net)
        );
        net.send(2, answer(&there)).unwrap();
        later(&mut net, 1);
        let list = listed(&mut net);
        assert!(list.contains("src=10.0.2.1 dst=10.0.1.1 sport=2000"), "{list}");
        assert!(!list.contains("29 src=10.0.1.1"), "{list}");
    }
}
