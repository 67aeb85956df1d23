//! Devices that get their packets from other devices' filters (`mirred … redirect dev ifb0`): what packets have been through by then.
//!
//! Follows: linux v6.12 `net/core/dev.c` `sch_handle_ingress` (before netfilter and routing), `sch_handle_egress`.

use super::ask::{Priority, State, act};
use super::space::{EGRESS, INGRESS, hook};
use crate::facts::{Device, Facts};
use crate::filters::Filter;

/// A device whose filters send packets on.
pub struct Feed<'a> {
    /// The device.
    pub device: &'a Device,
    /// Whether it does so with packets that it takes in: these have not met netfilter.
    pub ingress: bool,
    /// Those filters.
    pub filters: Vec<&'a Filter>,
}

/// Where the packets of a device come from, if filters send them to it.
pub fn feeds<'a>(facts: &'a Facts, dev: &str) -> Vec<Feed<'a>> {
    let mut all: Vec<Feed<'a>> = Vec::new();
    for device in facts.devices.iter().rev().filter(|d| d.name != dev) {
        if all.iter().any(|f| f.device.name == device.name) {
            continue;
        }
        for ingress in [true, false] {
            let here = |f: &&Filter| (hook(f.parent) == INGRESS) == ingress;
            let filters: Vec<&Filter> =
                device.filters.iter().filter(here).filter(|f| sends(f, dev)).collect();
            if !filters.is_empty() {
                all.push(Feed { device, ingress, filters });
            }
        }
    }
    all
}

/// Whether a filter sends its packets to a device.
fn sends(filter: &Filter, dev: &str) -> bool {
    filter.actions().any(|(kind, o)| kind == "mirred" && o.str("dev") == Some(dev))
}

impl Feed<'_> {
    /// Its hook in words.
    pub fn name(&self) -> String {
        let hook = match (self.ingress, self.filters.iter().all(|f| f.parent == EGRESS)) {
            (true, _) => "ingress",
            (false, true) => "egress",
            (false, false) => "filters",
        };
        format!("{} {hook}", self.device.name)
    }
    /// Whether the mark of the connection counts here.
    pub fn asks_connection(&self) -> bool {
        let asks = |f: &&Filter| f.actions().any(|(kind, _)| matches!(kind, "connmark" | "ctinfo"));
        self.filters.iter().any(asks)
    }
}

/// What packets have that devices take in and send on; where filters leave different marks, the mark is not known.
pub fn arrived(feeds: &[Feed<'_>]) -> State {
    let fresh = State { mark: (u32::MAX, 0), priority: Priority::Set(0), ..State::default() };
    let mut states: Vec<State> = Vec::new();
    for filter in feeds.iter().flat_map(|f| &f.filters) {
        let mut state = fresh.clone();
        act(filter, &mut state);
        if !states.contains(&state) {
            states.push(state);
        }
    }
    match states.as_slice() {
        [one] => one.clone(),
        _ => State { mark: (0, 0), ..fresh },
    }
}
