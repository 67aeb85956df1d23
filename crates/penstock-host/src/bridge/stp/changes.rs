//! What commands and devices change of a spanning tree.
//!
//! Follows: linux v6.12 `net/bridge/br_stp_if.c`, `br_stp.c` `br_set_hello_time`, `br_set_max_age`, `br_set_forward_delay`; `br_if.c` `br_port_carrier_check`; `br.c`
//! `br_device_event`.

use super::{PortNow, State, Tree};
use crate::bridge::Mac;
use crate::bridge::wheel::Clock;

impl Tree {
    /// `br_stp_set_enabled`.
    pub(crate) fn set_on(&mut self, on: bool, clock: Clock<'_>) {
        if on && !self.on {
            let hz = i64::from(clock.hz);
            self.set_forward_delay(self.bridge_forward_delay.clamp(2 * hz, 30 * hz));
            self.on = true;
            if self.up {
                clock.arm(&mut self.hello_timer, self.hello_time);
            }
            self.port_state_selection(clock);
        }
        self.on = on;
    }
    /// The bridge goes up (`br_stp_enable_bridge`, before it is told up), with the ports that are ready.
    pub(crate) fn enable(&mut self, clock: Clock<'_>) {
        if self.on {
            clock.arm(&mut self.hello_timer, self.hello_time);
        }
        self.config_bpdu_generation(clock);
        for p in 0..self.ports.len() {
            if self.ports[p].ready {
                self.enable_port(p, clock);
            }
        }
        self.up = true;
    }
    /// The bridge goes down (`br_stp_disable_bridge`, while it is told up).
    pub(crate) fn disable(&mut self, clock: Clock<'_>) {
        for p in 0..self.ports.len() {
            if self.ports[p].state != State::Disabled {
                self.disable_port(p, clock);
            }
        }
        self.set_topology_change(false, clock);
        self.topology_change_detected = false;
        (self.hello_timer, self.topology_change_timer, self.tcn_timer) = (None, None, None);
        self.up = false;
    }
    /// A port's device goes up or down, or its carrier does (`br_device_event`: NETDEV_UP, NETDEV_DOWN; `br_port_carrier_check`).
    pub(crate) fn port_changes(&mut self, p: usize, now: &PortNow, clock: Clock<'_>) {
        let (port, PortNow { up, ready, cost, .. }) = (&mut self.ports[p], *now);
        if ready && !port.own_cost {
            port.path_cost = cost;
        }
        let (was_up, was_ready) =
            (std::mem::replace(&mut port.up, up), std::mem::replace(&mut port.ready, ready));
        let disabled = port.state == State::Disabled;
        if !self.up {
            return;
        }
        if was_up && !up || was_ready && !ready && !disabled {
            self.disable_port(p, clock);
        } else if !was_up && ready || !was_ready && ready && disabled {
            self.enable_port(p, clock);
        }
    }
    /// A port is looked at once more (`netdev_state_change`).
    pub(crate) fn check_port(&mut self, p: usize, clock: Clock<'_>) {
        let port = &self.ports[p];
        if self.up && port.ready && port.state == State::Disabled {
            self.enable_port(p, clock);
        }
    }
    /// `br_stp_enable_port`.
    pub(crate) fn enable_port(&mut self, p: usize, clock: Clock<'_>) {
        self.become_designated_port(p);
        let port = &mut self.ports[p];
        port.state = State::Blocking;
        (port.topology_change_ack, port.config_pending) = (false, false);
        self.port_state_selection(clock);
    }
    /// `br_stp_disable_port`.
    pub(crate) fn disable_port(&mut self, p: usize, clock: Clock<'_>) {
        self.flushed.push(self.ports[p].ifindex);
        self.update(clock, |tree| {
            tree.become_designated_port(p);
            let port = &mut tree.ports[p];
            port.state = State::Disabled;
            (port.topology_change_ack, port.config_pending) = (false, false);
            (port.message_age_timer, port.forward_delay_timer, port.hold_timer) = (None, None, None);
        });
    }
    /// The bridge has another address (`br_stp_change_bridge_id`).
    pub(crate) fn set_address(&mut self, mac: Mac, clock: Clock<'_>) {
        let old = std::mem::replace(&mut self.own.mac, mac);
        if old == mac {
            return;
        }
        self.own.mac = old;
        self.update(clock, |tree| {
            tree.own.mac = mac;
            for port in &mut tree.ports {
                for id in [&mut port.designated_bridge, &mut port.designated_root] {
                    if id.mac == old {
                        id.mac = mac;
                    }
                }
            }
        });
    }
    /// `br_stp_set_bridge_priority`.
    pub(crate) fn set_priority(&mut self, prio: u16, clock: Clock<'_>) {
        self.update(clock, |tree| {
            for p in 0..tree.ports.len() {
                if tree.ports[p].state != State::Disabled && tree.is_designated(p) {
                    tree.ports[p].designated_bridge.prio = prio;
                }
            }
            tree.own.prio = prio;
        });
    }
    /// `br_stp_set_port_priority`.
    pub(crate) fn set_port_priority(&mut self, p: usize, priority: u16, clock: Clock<'_>) {
        let designated = self.is_designated(p);
        let port = &mut self.ports[p];
        port.priority = priority;
        if designated {
            port.designated_port = port.id();
        }
        if port.designated_bridge == self.own && port.id() < port.designated_port {
            self.become_designated_port(p);
            self.port_state_selection(clock);
        }
    }
    /// `br_stp_set_path_cost`.
    pub(crate) fn set_path_cost(&mut self, p: usize, cost: u32, clock: Clock<'_>) {
        (self.ports[p].path_cost, self.ports[p].own_cost) = (cost, true);
        self.configuration_update(clock);
        self.port_state_selection(clock);
    }
    /// `br_set_hello_time`.
    pub(crate) fn set_hello_time(&mut self, jiffies: i64) {
        self.bridge_hello_time = jiffies;
        if self.is_root() {
            self.hello_time = jiffies;
        }
    }
    /// `br_set_max_age`.
    pub(crate) fn set_max_age(&mut self, jiffies: i64) {
        self.bridge_max_age = jiffies;
        if self.is_root() {
            self.max_age = jiffies;
        }
    }
    /// `__br_set_forward_delay`.
    pub(crate) fn set_forward_delay(&mut self, jiffies: i64) {
        self.bridge_forward_delay = jiffies;
        if self.is_root() {
            self.forward_delay = jiffies;
        }
    }
}
