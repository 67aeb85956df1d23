//! Where packets would go, asked before there are any.

use crate::Host;
use crate::route::{Hop, Key};
use std::net::Ipv4Addr;

impl Host {
    /// The way a packet made here would take to `dst`, by today's routes and rules; nothing is changed or remembered.
    pub fn way_to(&self, dst: Ipv4Addr) -> Hop {
        self.fib.search_key(&Key::to(dst))
    }
    /// Whether it may change the addresses of what it forwards: whatever tracks connections.
    pub fn translates(&self) -> bool {
        self.netfilter.tracking().on()
    }
}
