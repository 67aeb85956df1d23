//! What `ip … show` prints: text of both profiles, and JSON.
//!
//! Follows: iproute2 6.1.0 `ip/ipaddress.c` `print_linkinfo`, `print_addrinfo`, `ip/iproute.c` `print_route`, `ip/iprule.c`
//! `print_rule`, `ip/ipneigh.c` `print_neigh`, `ip/ipnetns.c`, `ip/ipnexthop.c`; 2.6.35 for the old profile.

mod addr;
mod bridge;
mod link;
mod neigh;
mod nexthop;
mod route;
mod said;
mod tunnel;
mod vrf;

pub use addr::AddressView;
pub use bridge::{FdbView, PortView, VlanView, fdbs, ports, vlans};
pub use link::{Details, LinkRef, LinkView, NetnsRef, links};
pub use neigh::{NeighView, neighbours, netns, netns_ids};
pub use nexthop::{NexthopView, nexthops};
pub use route::{NextHopView, RouteView, RuleView, routes, rules};
pub use said::{Said, SaidValue};
pub use tunnel::tunnels;
pub use vrf::vrfs;

/// Bytes in hexadecimal with colons between.
fn mac_text(mac: &[u8]) -> String {
    mac.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}
