//! Where packets would go, asked before there are any.

use crate::Host;
use crate::route::{Key, RouteKind};
use crate::six::{Key6, Kind6};
use std::net::IpAddr;

/// The way a packet would take from a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WayTo {
    /// What becomes of it.
    pub goes: Goes,
    /// Interface out.
    pub oif: u32,
    /// The next machine: a gateway, or the destination itself.
    pub next: IpAddr,
    /// The source address it gets; `None` where the machine has none for it.
    pub src: Option<IpAddr>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goes {
    /// It is for this machine.
    Here,
    /// It is sent to the next one.
    On,
    /// A route refuses it, or sends it to many.
    Elsewhere,
    /// There is no route.
    Nowhere,
}

impl Host {
    /// The way a packet made here would take to `dst`, by today's routes and rules; nothing is changed or remembered.
    pub fn way_to(&self, dst: IpAddr) -> WayTo {
        match dst {
            IpAddr::V4(dst) => {
                let hop = self.fib.search_key(&Key::to(dst));
                let goes = match hop.kind {
                    Some(RouteKind::Local) => Goes::Here,
                    Some(RouteKind::Unicast) => Goes::On,
                    Some(_) => Goes::Elsewhere,
                    None => Goes::Nowhere,
                };
                let own = || self.device(hop.oif).and_then(crate::NetDevice::primary_address);
                let src = if hop.src.is_unspecified() { own() } else { Some(hop.src) };
                WayTo { goes, oif: hop.oif, next: self.fib.next_of(&hop), src: src.map(IpAddr::V4) }
            }
            IpAddr::V6(dst) => {
                let hop = self.search6(&Key6::to(dst));
                let goes = match hop.kind {
                    Some(Kind6::Local | Kind6::Anycast) => Goes::Here,
                    Some(Kind6::Unicast) => Goes::On,
                    Some(_) => Goes::Elsewhere,
                    None => Goes::Nowhere,
                };
                let src = self.source6(&hop, dst).map(IpAddr::V6);
                WayTo { goes, oif: hop.oif, next: hop.next.into(), src }
            }
        }
    }
    /// Whether it sends on packets to an address's family.
    pub fn forwards_to(&self, dst: IpAddr) -> bool {
        if dst.is_ipv4() { self.forwards() } else { self.forwards6() }
    }
    /// Whether ways hang on more than a destination: rules beyond those the kernel makes.
    pub fn has_rules_for(&self, dst: IpAddr) -> bool {
        if dst.is_ipv4() { self.fib.rules().len() > 3 } else { self.six.fib.rules().len() > 2 }
    }
    /// Whether it may change the addresses of what it forwards: whatever tracks connections.
    pub fn translates(&self) -> bool {
        self.netfilter.tracking().on()
    }
}
