//! What wakes at its time: programs, the qdiscs of cards, machines.

use crate::event::Seq;
use crate::net::Net;
use penstock_model::Time;

impl Net {
    /// Sets a timer of a program; see [`Wakes::set_timer`](crate::wake::Wakes::set_timer).
    pub(crate) fn set_timer(&mut self, timer: u32, at: Time) {
        self.wakes.set_timer(timer, at, &mut self.queue);
    }
    pub(crate) fn watchdog(&mut self, n: u32, seq: Seq) {
        let nic = &mut self.cables.nics[n as usize];
        let host = nic.host;
        if nic.watchdog.fires(seq) {
            let (ifindex, now) = (nic.ifindex, self.queue.now());
            match self.machines[host as usize].host.next_wakeup(ifindex) {
                // It was set anew meanwhile (`hrtimer_start` moves it): nobody asks now.
                Some(later) if later > now => self.arm_watchdog(n),
                Some(_) => {
                    self.kick(n);
                    self.settle(host);
                }
                None => {}
            }
        }
    }
    pub(crate) fn host_timer(&mut self, host: u32, seq: Seq) {
        if self.machines[host as usize].timer.fires(seq) {
            self.on_host(host, |h, cx| h.handle_timer(cx));
            self.settle(host);
        }
    }
}
