//! What wakes at its time: programs, the qdiscs of cards, machines.

use crate::event::{Event, Seq, Timer};
use crate::net::Net;
use crate::still::{CALL, Toll};
use crate::wake::AppTimer;
use penstock_model::Time;

impl Net {
    /// Makes a timer that wakes `app` with [`Wake::Timer`]`(token)`.
    pub(crate) fn new_timer(&mut self, app: u32, token: u32) -> u32 {
        self.app_timers.push(AppTimer { app, token, timer: Timer::default(), toll: Toll::default() });
        self.app_timers.len() as u32 - 1
    }
    /// Sets a timer, or moves it; in the past means now. What is done at its end costs a system call: a program that does it without a
    /// pause gets on by that.
    pub(crate) fn set_timer(&mut self, timer: u32, at: Time) {
        let now = self.now();
        let t = &mut self.app_timers[timer as usize];
        let at = at.max(now + t.toll.charge(now, CALL));
        let t = &mut t.timer;
        *t = Timer::default();
        t.arm(Some(at), Event::App(timer), &mut self.queue);
    }
    /// Unsets a timer.
    pub(crate) fn stop_timer(&mut self, timer: u32) {
        self.app_timers[timer as usize].timer = Timer::default();
    }
    pub(crate) fn watchdog(&mut self, n: u32, seq: Seq) {
        let nic = &mut self.nics[n as usize];
        let host = nic.host;
        if nic.watchdog.fires(seq) {
            self.kick(n);
            self.settle(host);
        }
    }
    pub(crate) fn host_timer(&mut self, host: u32, seq: Seq) {
        if self.machines[host as usize].timer.fires(seq) {
            self.on_host(host, |h, cx| h.handle_timer(cx));
            self.settle(host);
        }
    }
}
