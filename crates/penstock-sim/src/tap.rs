//! Taps on devices: what comes to a queue and what becomes of it, for another engine to be compared with this one.

use crate::link::Nic;
use crate::net::Net;
use crate::spec::HostId;
use crate::world::World;
use penstock_host::{Heard, Turn};
use penstock_model::Time;

impl World {
    /// Hears from now on what happens at a device; see [`penstock_host::Tap`]. A device that is not there is not heard.
    pub fn tap(&mut self, host: HostId, device: &str) {
        let machine = &mut self.net.machines[host.0 as usize].host;
        if let Some(ifindex) = machine.ifindex(device) {
            machine.put_tap(ifindex);
            self.net.tapped = true;
        }
    }
    /// Takes the taps of a machine off: indices of their devices, and what was heard.
    pub fn take_taps(&mut self, host: HostId) -> Vec<(u32, Vec<Heard>)> {
        self.net.machines[host.0 as usize].host.take_taps()
    }
}

impl Net {
    /// Notes what came to a card before its own turn at this moment: such a turn is an event of its own.
    #[cold]
    pub(crate) fn mark_turn(&mut self, n: u32) {
        let now = self.queue.now();
        let nic = &self.cables.nics[n as usize];
        let turn = nic.turn(now);
        if let Some(tap) = self.machines[nic.host as usize].host.tap(nic.ifindex) {
            tap.asked(now, turn);
        }
    }
    /// Tells the taps of a machine of a command.
    pub(crate) fn tap_command(&mut self, host: u32, line: &str) {
        if !self.tapped {
            return;
        }
        let now = self.queue.now();
        for n in self.machines[host as usize].nics.clone() {
            let Some(nic) = self.cables.nics.get(n as usize) else { continue };
            if let Some(tap) = self.machines[host as usize].host.tap(nic.ifindex) {
                tap.command(now, line, nic.turn(now));
            }
        }
    }
}

impl Nic {
    /// What of its own is still to come at this moment.
    fn turn(&self, now: Time) -> Turn {
        if self.tx_pending && self.busy_until == now {
            Turn::Wire
        } else if self.watchdog.at() == Some(now) {
            Turn::Timer
        } else {
            Turn::Over
        }
    }
}
