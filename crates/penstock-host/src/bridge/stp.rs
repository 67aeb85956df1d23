//! The spanning tree of a bridge, as the kernel itself keeps one (`stp_state 1`): IEEE 802.1D-1998 clause 8.
//!
//! Follows: linux v6.12 `net/bridge/br_stp.c`, `br_stp_timer.c`, `br_stp_if.c` (`br_stp_enable_port` to `br_stp_set_path_cost`), `br_stp_bpdu.c` `br_stp_rcv`.
//! Differs: there is no `/sbin/bridge-stp`, so that no program takes the tree over.

mod changes;

use super::Mac;
use super::bpdu::{Bpdu, Config};
use super::wheel::{Clock, Due, Timer};
use penstock_model::Span;
use std::collections::BTreeSet;

/// `BR_MAX_PORTS`.
const MAX_PORTS: u16 = 1024;
/// `BR_HOLD_TIME`, seconds.
const HOLD: i64 = 1;

/// State of a port, by its number (`BR_STATE_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Disabled = 0,
    Listening = 1,
    Learning = 2,
    Forwarding = 3,
    Blocking = 4,
}

impl State {
    /// As `bridge link` says it.
    pub(crate) fn name(self) -> &'static str {
        ["disabled", "listening", "learning", "forwarding", "blocking"][self as usize]
    }
    pub(super) fn sends(self) -> bool {
        self == State::Forwarding
    }
    pub(super) fn learns(self) -> bool {
        matches!(self, State::Learning | State::Forwarding)
    }
}

/// `bridge_id`: priority and address, of which the least is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Id {
    pub(crate) prio: u16,
    pub(crate) mac: Mac,
}

/// Which timer of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Which {
    Hello,
    Tcn,
    TopologyChange,
    /// Of the port at this place.
    MessageAge(usize),
    ForwardDelay(usize),
    Hold(usize),
}

/// What a bridge knows of its tree. Times are in ticks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tree {
    /// `stp_enabled`: it takes part now; else it goes on with what it had.
    pub(crate) on: bool,
    pub(crate) own: Id,
    pub(crate) designated_root: Id,
    pub(crate) root_path_cost: u32,
    /// The number of the port towards the root; 0: it is the root itself.
    pub(crate) root_port: u16,
    /// As the root has them.
    pub(crate) max_age: i64,
    pub(crate) hello_time: i64,
    pub(crate) forward_delay: i64,
    /// As they are set here.
    bridge_max_age: i64,
    bridge_hello_time: i64,
    bridge_forward_delay: i64,
    pub(crate) topology_change: bool,
    pub(crate) topology_change_detected: bool,
    /// Who is not heard is forgotten after so long, while the topology changes.
    pub(crate) ageing: Option<Span>,
    /// The bridge is up.
    pub(crate) up: bool,
    /// The states of its ports have been looked over once: its carrier follows from them.
    pub(crate) selected: bool,
    pub(crate) hello_timer: Timer,
    pub(crate) tcn_timer: Timer,
    pub(crate) topology_change_timer: Timer,
    /// The newest first.
    pub(crate) ports: Vec<TreePort>,
    /// To be sent, by the index of the port's device.
    out: Vec<(u32, Bpdu)>,
    /// Ports whose addresses are to be forgotten.
    pub(super) flushed: Vec<u32>,
}

/// What it knows of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TreePort {
    pub(crate) ifindex: u32,
    pub(crate) number: u16,
    pub(crate) state: State,
    pub(crate) priority: u16,
    pub(crate) path_cost: u32,
    /// A command has set that: it does not follow from the speed.
    own_cost: bool,
    pub(crate) designated_root: Id,
    pub(crate) designated_cost: u32,
    pub(crate) designated_bridge: Id,
    pub(crate) designated_port: u16,
    designated_age: i64,
    pub(crate) topology_change_ack: bool,
    pub(crate) config_pending: bool,
    pub(crate) message_age_timer: Timer,
    pub(crate) forward_delay_timer: Timer,
    pub(crate) hold_timer: Timer,
    /// Its device is up, and has a carrier too.
    pub(crate) up: bool,
    pub(crate) ready: bool,
    /// `guard`: a BPDU disables it.
    pub(crate) guard: bool,
    /// `root_block`: it never leads to the root.
    pub(crate) root_block: bool,
}

impl TreePort {
    /// `br_make_port_id`.
    pub(crate) fn id(&self) -> u16 {
        self.priority << 10 | self.number & 0x3ff
    }
    /// It goes on to the next state when `forward_delay` is over.
    fn waits(&self) -> bool {
        matches!(self.state, State::Listening | State::Learning)
    }
    /// What comes by it costs so much to the root.
    fn cost(&self) -> u32 {
        self.designated_cost.wrapping_add(self.path_cost)
    }
}

/// A port's device as it is now.
#[derive(Clone, Copy)]
pub(crate) struct PortNow {
    pub(crate) ifindex: u32,
    pub(crate) up: bool,
    /// It is up, and has a carrier.
    pub(crate) ready: bool,
    /// The path cost that follows from its speed.
    pub(crate) cost: u32,
}

/// What is set of the times of a bridge, in ticks.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) max_age: i64,
    pub(crate) hello_time: i64,
    pub(crate) forward_delay: i64,
}

impl Tree {
    /// Of a bridge that takes part in none so far.
    pub(crate) fn new(own: Id, times: Times, up: bool) -> Tree {
        Tree {
            on: false,
            own,
            designated_root: own,
            root_path_cost: 0,
            root_port: 0,
            max_age: times.max_age,
            hello_time: times.hello_time,
            forward_delay: times.forward_delay,
            bridge_max_age: times.max_age,
            bridge_hello_time: times.hello_time,
            bridge_forward_delay: times.forward_delay,
            topology_change: false,
            topology_change_detected: false,
            ageing: None,
            up,
            selected: false,
            hello_timer: None,
            tcn_timer: None,
            topology_change_timer: None,
            ports: Vec::new(),
            out: Vec::new(),
            flushed: Vec::new(),
        }
    }
    /// A port comes to be (`new_nbp`, `find_portno`), disabled.
    pub(crate) fn add_port(&mut self, ifindex: u32, path_cost: u32) {
        let taken: BTreeSet<u16> = self.ports.iter().map(|p| p.number).collect();
        let number = (1..MAX_PORTS).find(|n| !taken.contains(n)).unwrap_or(MAX_PORTS - 1);
        let mut port = TreePort {
            ifindex,
            number,
            state: State::Disabled,
            priority: 32,
            path_cost,
            own_cost: false,
            designated_root: self.designated_root,
            designated_cost: self.root_path_cost,
            designated_bridge: self.own,
            designated_port: 0,
            designated_age: 0,
            topology_change_ack: false,
            config_pending: false,
            message_age_timer: None,
            forward_delay_timer: None,
            hold_timer: None,
            up: false,
            ready: false,
            guard: false,
            root_block: false,
        };
        port.designated_port = port.id();
        self.ports.insert(0, port);
    }
    pub(crate) fn port(&self, ifindex: u32) -> Option<&TreePort> {
        self.ports.iter().find(|p| p.ifindex == ifindex)
    }
    /// A port's place.
    pub(crate) fn place(&self, ifindex: u32) -> Option<usize> {
        self.ports.iter().position(|p| p.ifindex == ifindex)
    }
    pub(crate) fn is_root(&self) -> bool {
        self.own == self.designated_root
    }
    /// Some port sends: the bridge has a carrier.
    pub(crate) fn carries(&self) -> bool {
        self.ports.iter().any(|p| p.state.sends())
    }
    /// `br_is_designated_port`.
    fn is_designated(&self, p: usize) -> bool {
        let port = &self.ports[p];
        port.designated_bridge == self.own && port.designated_port == port.id()
    }
    /// What stands in force of a time, in hundredths of a second.
    pub(crate) fn in_force(&self, ticks: i64, hz: u32) -> i64 {
        ticks * 100 / i64::from(hz)
    }
    /// As it is set here, ticks.
    pub(crate) fn bridge_forward_delay(&self) -> i64 {
        self.bridge_forward_delay
    }
    /// Whether a BPDU is to be sent.
    pub(crate) fn has_out(&self) -> bool {
        !self.out.is_empty()
    }
    /// BPDUs that are to be sent.
    pub(crate) fn take_out(&mut self) -> Vec<(u32, Bpdu)> {
        std::mem::take(&mut self.out)
    }
    /// The timer that goes off first of those from which something follows.
    fn next(&self) -> Option<(Due, Which)> {
        let own = [
            (self.hello_timer, Which::Hello),
            (self.tcn_timer, Which::Tcn),
            (self.topology_change_timer, Which::TopologyChange),
        ];
        let of_ports = self.ports.iter().enumerate().flat_map(|(n, p)| {
            let delay = if p.waits() { p.forward_delay_timer } else { None };
            [
                (p.message_age_timer, Which::MessageAge(n)),
                (delay, Which::ForwardDelay(n)),
                (p.hold_timer, Which::Hold(n)),
            ]
        });
        let set = own.into_iter().chain(of_ports).filter_map(|(timer, which)| Some((timer?, which)));
        set.min_by_key(|(due, _)| due.turn())
    }
    pub(crate) fn first(&self) -> Option<Due> {
        self.next().map(|(due, _)| due)
    }
    /// Forgets timers that have gone off without a consequence.
    pub(super) fn forget_stale(&mut self, clock: Clock<'_>) {
        for port in self.ports.iter_mut().filter(|p| !p.waits()) {
            port.forward_delay_timer.take_if(|due| due.at <= clock.now);
        }
    }

    fn should_become_root_port(&self, p: usize, root_port: Option<usize>) -> bool {
        let port = &self.ports[p];
        if port.state == State::Disabled || self.is_designated(p) || self.own <= port.designated_root {
            return false;
        }
        let Some(root) = root_port.map(|r| &self.ports[r]) else { return true };
        let of = |p: &TreePort| (p.designated_root, p.cost(), p.designated_bridge, p.designated_port, p.id());
        of(port) < of(root)
    }
    fn root_selection(&mut self, clock: Clock<'_>) {
        let mut root = None;
        for p in 0..self.ports.len() {
            if !self.should_become_root_port(p, root) {
                continue;
            }
            if self.ports[p].root_block {
                self.ports[p].state = State::Listening;
                if self.forward_delay > 0 {
                    clock.arm(&mut self.ports[p].forward_delay_timer, self.forward_delay);
                }
            } else {
                root = Some(p);
            }
        }
        match root {
            None => {
                (self.root_port, self.designated_root, self.root_path_cost) = (0, self.own, 0);
            }
            Some(p) => {
                let port = &self.ports[p];
                (self.root_port, self.designated_root, self.root_path_cost) =
                    (port.number, port.designated_root, port.cost());
            }
        }
    }
    fn become_root_bridge(&mut self, clock: Clock<'_>) {
        self.max_age = self.bridge_max_age;
        self.hello_time = self.bridge_hello_time;
        self.forward_delay = self.bridge_forward_delay;
        self.topology_change_detection(clock);
        self.tcn_timer = None;
        if self.up {
            self.config_bpdu_generation(clock);
            clock.arm(&mut self.hello_timer, self.hello_time);
        }
    }
    fn transmit_config(&mut self, p: usize, clock: Clock<'_>) {
        if self.ports[p].hold_timer.is_some() {
            self.ports[p].config_pending = true;
            return;
        }
        let message_age = match self.ports.iter().find(|r| r.number == self.root_port) {
            Some(root) if !self.is_root() => {
                clock.jiffies() - root.designated_age + i64::from(clock.hz) / 256 + 1
            }
            _ => 0,
        };
        if message_age >= self.max_age {
            return;
        }
        let port = &mut self.ports[p];
        if self.on {
            let config = Config {
                topology_change: self.topology_change,
                topology_change_ack: port.topology_change_ack,
                root: self.designated_root,
                root_path_cost: self.root_path_cost,
                bridge: self.own,
                port: port.id(),
                message_age,
                max_age: self.max_age,
                hello_time: self.hello_time,
                forward_delay: self.forward_delay,
            };
            self.out.push((port.ifindex, Bpdu::Config(config)));
        }
        port.topology_change_ack = false;
        port.config_pending = false;
        if self.on {
            clock.arm_rounded(&mut port.hold_timer, HOLD * i64::from(clock.hz));
        }
    }
    fn transmit_tcn(&mut self) {
        if let Some(root) = self.ports.iter().find(|p| p.number == self.root_port)
            && self.on
        {
            self.out.push((root.ifindex, Bpdu::TopologyChange));
        }
    }
    fn should_become_designated_port(&self, p: usize) -> bool {
        let port = &self.ports[p];
        self.is_designated(p)
            || port.designated_root != self.designated_root
            || (self.root_path_cost, self.own, port.id())
                < (port.designated_cost, port.designated_bridge, port.designated_port)
    }
    fn become_designated_port(&mut self, p: usize) {
        let port = &mut self.ports[p];
        port.designated_root = self.designated_root;
        port.designated_cost = self.root_path_cost;
        port.designated_bridge = self.own;
        port.designated_port = port.id();
    }
    fn configuration_update(&mut self, clock: Clock<'_>) {
        self.root_selection(clock);
        for p in 0..self.ports.len() {
            if self.ports[p].state != State::Disabled && self.should_become_designated_port(p) {
                self.become_designated_port(p);
            }
        }
    }
    fn supersedes(&self, p: usize, config: &Config) -> bool {
        let port = &self.ports[p];
        let (said, known) = (
            (config.root, config.root_path_cost, config.bridge),
            (port.designated_root, port.designated_cost, port.designated_bridge),
        );
        match said.cmp(&known) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => config.bridge != self.own || config.port <= port.designated_port,
        }
    }
    fn topology_change_detection(&mut self, clock: Clock<'_>) {
        if !self.on || !self.up {
            return;
        }
        if self.is_root() {
            self.set_topology_change(true, clock);
            clock.arm(&mut self.topology_change_timer, self.bridge_forward_delay + self.bridge_max_age);
        } else if !self.topology_change_detected {
            self.transmit_tcn();
            clock.arm(&mut self.tcn_timer, self.bridge_hello_time);
        }
        self.topology_change_detected = true;
    }
    fn set_topology_change(&mut self, changes: bool, clock: Clock<'_>) {
        if self.on && self.topology_change != changes {
            let tick = 1_000_000_000 / i64::from(clock.hz);
            self.ageing = changes.then_some(Span::from_ns(2 * self.forward_delay * tick));
        }
        self.topology_change = changes;
    }
    fn config_bpdu_generation(&mut self, clock: Clock<'_>) {
        for p in 0..self.ports.len() {
            if self.ports[p].state != State::Disabled && self.is_designated(p) {
                self.transmit_config(p, clock);
            }
        }
    }
    fn make_blocking(&mut self, p: usize, clock: Clock<'_>) {
        let state = self.ports[p].state;
        if matches!(state, State::Disabled | State::Blocking) {
            return;
        }
        if state.learns() {
            self.topology_change_detection(clock);
        }
        self.ports[p].state = State::Blocking;
        self.ports[p].forward_delay_timer = None;
    }
    fn make_forwarding(&mut self, p: usize, clock: Clock<'_>) {
        if self.ports[p].state != State::Blocking {
            return;
        }
        if !self.on || self.forward_delay == 0 {
            self.ports[p].state = State::Forwarding;
            self.topology_change_detection(clock);
            self.ports[p].forward_delay_timer = None;
        } else {
            self.ports[p].state = State::Listening;
        }
        if self.forward_delay != 0 {
            clock.arm(&mut self.ports[p].forward_delay_timer, self.forward_delay);
        }
    }
    pub(crate) fn port_state_selection(&mut self, clock: Clock<'_>) {
        self.selected = true;
        for p in 0..self.ports.len() {
            if self.ports[p].state == State::Disabled {
                continue;
            }
            if self.ports[p].number == self.root_port {
                self.ports[p].config_pending = false;
                self.ports[p].topology_change_ack = false;
                self.make_forwarding(p, clock);
            } else if self.is_designated(p) {
                self.ports[p].message_age_timer = None;
                self.make_forwarding(p, clock);
            } else {
                self.ports[p].config_pending = false;
                self.ports[p].topology_change_ack = false;
                self.make_blocking(p, clock);
            }
        }
    }
    /// What may make another bridge the root, and then this one.
    fn update(&mut self, clock: Clock<'_>, change: impl FnOnce(&mut Tree)) {
        let was_root = self.is_root();
        change(self);
        self.configuration_update(clock);
        self.port_state_selection(clock);
        if self.is_root() && !was_root {
            self.become_root_bridge(clock);
        }
    }

    /// A BPDU came by a port (`br_stp_rcv`, from where the bridge and the port are known).
    pub(crate) fn receive(&mut self, p: usize, bpdu: &Bpdu, clock: Clock<'_>) {
        if !self.on || !self.up || self.ports[p].state == State::Disabled {
            return;
        }
        if self.ports[p].guard {
            return self.disable_port(p, clock);
        }
        match bpdu {
            Bpdu::Config(config) if config.message_age <= config.max_age => {
                self.received_config_bpdu(p, config, clock);
            }
            Bpdu::Config(_) => {}
            Bpdu::TopologyChange if self.is_designated(p) => {
                self.topology_change_detection(clock);
                self.ports[p].topology_change_ack = true;
                self.transmit_config(p, clock);
            }
            Bpdu::TopologyChange => {}
        }
    }
    fn received_config_bpdu(&mut self, p: usize, config: &Config, clock: Clock<'_>) {
        let was_root = self.is_root();
        if !self.supersedes(p, config) {
            if self.is_designated(p) {
                self.transmit_config(p, clock);
            }
            return;
        }
        let port = &mut self.ports[p];
        port.designated_root = config.root;
        port.designated_cost = config.root_path_cost;
        port.designated_bridge = config.bridge;
        port.designated_port = config.port;
        port.designated_age = clock.jiffies() - config.message_age;
        clock.arm(&mut port.message_age_timer, config.max_age - config.message_age);
        self.configuration_update(clock);
        self.port_state_selection(clock);
        if !self.is_root() && was_root {
            self.hello_timer = None;
            if self.topology_change_detected {
                self.topology_change_timer = None;
                self.transmit_tcn();
                clock.arm(&mut self.tcn_timer, self.bridge_hello_time);
            }
        }
        if self.ports[p].number == self.root_port {
            self.max_age = config.max_age;
            self.hello_time = config.hello_time;
            self.forward_delay = config.forward_delay;
            self.set_topology_change(config.topology_change, clock);
            self.config_bpdu_generation(clock);
            if config.topology_change_ack {
                self.topology_change_detected = false;
                self.tcn_timer = None;
            }
        }
    }

    /// The first timer goes off.
    pub(crate) fn run(&mut self, clock: Clock<'_>) {
        let Some((_, which)) = self.next().filter(|(due, _)| due.at <= clock.now) else { return };
        match which {
            Which::Hello => {
                self.hello_timer = None;
                if self.up {
                    self.config_bpdu_generation(clock);
                    if self.on {
                        clock.arm_rounded(&mut self.hello_timer, self.hello_time);
                    }
                }
            }
            Which::Tcn => {
                self.tcn_timer = None;
                if !self.is_root() && self.up {
                    self.transmit_tcn();
                    clock.arm(&mut self.tcn_timer, self.bridge_hello_time);
                }
            }
            Which::TopologyChange => {
                self.topology_change_timer = None;
                self.topology_change_detected = false;
                self.set_topology_change(false, clock);
            }
            Which::MessageAge(p) => {
                self.ports[p].message_age_timer = None;
                if self.ports[p].state != State::Disabled {
                    self.update(clock, |tree| tree.become_designated_port(p));
                }
            }
            Which::ForwardDelay(p) => {
                self.ports[p].forward_delay_timer = None;
                self.forward_delay_over(p, clock);
            }
            Which::Hold(p) => {
                self.ports[p].hold_timer = None;
                if self.ports[p].config_pending {
                    self.transmit_config(p, clock);
                }
            }
        }
    }
    fn forward_delay_over(&mut self, p: usize, clock: Clock<'_>) {
        match self.ports[p].state {
            State::Listening => {
                self.ports[p].state = State::Learning;
                clock.arm(&mut self.ports[p].forward_delay_timer, self.forward_delay);
            }
            State::Learning => {
                self.ports[p].state = State::Forwarding;
                let own = self.own;
                let of_ours = |p: &TreePort| p.state != State::Disabled && p.designated_bridge == own;
                if self.ports.iter().any(of_ours) {
                    self.topology_change_detection(clock);
                }
            }
            _ => {}
        }
    }
}
