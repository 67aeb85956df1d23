//! `net.ipv4.neigh.NAME` and `net.ipv6.neigh.NAME`: how neighbours of a device are asked, and for how long an answer holds.
//!
//! Follows: linux v6.12 `net/core/neighbour.c` `neigh_parms`, `neigh_rand_reach_time`, `neigh_copy_dflt_parms`, `neigh_proc_base_reachable_time`.
//! Differs: what `default` says holds for a device from then on, also where it was made before.

use super::NeighTable;
use penstock_model::Time;

/// One of the settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Parm {
    /// `base_reachable_time`: mean life of a confirmation, ms.
    Reachable,
    /// `delay_first_probe_time`: for how long an old entry is used before it is probed, ms.
    Delay,
    /// `gc_stale_time`, ms. Nothing is collected here.
    Stale,
    /// `mcast_solicit`: questions to all.
    Mcast,
    /// `mcast_resolicit`: the same where it was known.
    McastAgain,
    /// `retrans_time`: between two questions, ms.
    Retrans,
    /// `ucast_solicit`: questions to the neighbour alone.
    Ucast,
    /// `app_solicit`: questions to a program.
    App,
    /// `anycast_delay`, ms.
    Anycast,
    /// `proxy_delay`, ms.
    ProxyDelay,
    /// `proxy_qlen`: questions that wait so long.
    ProxyQueue,
    /// `locktime`: for how long a new address does not replace one, ms.
    Lock,
    /// `unres_qlen_bytes`: what may wait for an address.
    QueueBytes,
}

/// `SKB_TRUESIZE(ETH_FRAME_LEN)`: what a full frame takes of memory, bytes.
const FRAME: i64 = 2112;

impl Parm {
    fn begins(self, six: bool) -> i64 {
        match self {
            Parm::Reachable => 30_000,
            Parm::Delay => 5_000,
            Parm::Stale => 60_000,
            Parm::Mcast | Parm::Ucast => 3,
            Parm::McastAgain | Parm::App => 0,
            Parm::Retrans | Parm::Anycast => 1_000,
            Parm::ProxyDelay => 800,
            Parm::ProxyQueue => 64,
            Parm::Lock => {
                if six {
                    0
                } else {
                    1_000
                }
            }
            Parm::QueueBytes => 212_992,
        }
    }
    /// The setting of this name, and how many of its own units one of the name's is.
    fn called(name: &str) -> Option<(Parm, i64)> {
        Some(match name {
            "base_reachable_time" => (Parm::Reachable, 1_000),
            "base_reachable_time_ms" => (Parm::Reachable, 1),
            "delay_first_probe_time" => (Parm::Delay, 1_000),
            "gc_stale_time" => (Parm::Stale, 1_000),
            "mcast_solicit" => (Parm::Mcast, 1),
            "mcast_resolicit" => (Parm::McastAgain, 1),
            // Hundredths of a second (USER_HZ).
            "retrans_time" => (Parm::Retrans, 10),
            "retrans_time_ms" => (Parm::Retrans, 1),
            "ucast_solicit" => (Parm::Ucast, 1),
            "app_solicit" => (Parm::App, 1),
            "anycast_delay" => (Parm::Anycast, 10),
            "proxy_delay" => (Parm::ProxyDelay, 10),
            "proxy_qlen" => (Parm::ProxyQueue, 1),
            "locktime" => (Parm::Lock, 10),
            "unres_qlen" => (Parm::QueueBytes, FRAME),
            "unres_qlen_bytes" => (Parm::QueueBytes, 1),
            _ => return None,
        })
    }
    fn is_time(self) -> bool {
        let times = [
            Parm::Reachable,
            Parm::Delay,
            Parm::Stale,
            Parm::Retrans,
            Parm::Anycast,
            Parm::ProxyDelay,
            Parm::Lock,
        ];
        times.contains(&self)
    }
}

/// The family of a key's table, the device, and the name.
pub(crate) fn split(key: &str) -> Option<(bool, &str, &str)> {
    let (six, rest) = match key.strip_prefix("net.ipv6.neigh.") {
        Some(rest) => (true, rest),
        None => (false, key.strip_prefix("net.ipv4.neigh.")?),
    };
    let (device, name) = rest.rsplit_once('.')?;
    Some((six, device, name))
}

impl NeighTable {
    /// A setting of a device; of 0 what others begin with.
    pub(crate) fn parm(&self, six: bool, ifindex: u32, which: Parm) -> i64 {
        if self.set.is_empty() {
            return which.begins(six);
        }
        let of = |ifindex| self.set.get(&(six, ifindex, which)).copied();
        of(ifindex).or_else(|| of(0)).unwrap_or(which.begins(six))
    }
    /// The same in ticks of these timers.
    pub(crate) fn ticks(&self, six: bool, ifindex: u32, which: Parm) -> i64 {
        let hz = i64::from(self.kernel.hz());
        (self.parm(six, ifindex, which) * hz + 999) / 1_000
    }
    /// Of the key `NAME` below a device, as `/proc/sys` shows it.
    pub(crate) fn setting(&self, six: bool, ifindex: u32, name: &str) -> Option<i64> {
        let (which, unit) = Parm::called(name)?;
        let value = self.parm(six, ifindex, which);
        //= linux v6.12 net/core/neighbour.c proc_unres_qlen: rounded up
        Some(if unit == FRAME { (value + FRAME - 1) / FRAME } else { value / unit })
    }
    /// Sets it; `None`: it is refused. Times are whole ticks of a clock with `hz`.
    pub(crate) fn set_setting(
        &mut self,
        six: bool,
        ifindex: u32,
        name: &str,
        value: i64,
        hz: u32,
    ) -> Option<()> {
        let Some((which, unit)) = Parm::called(name) else { return Some(()) };
        if !(0..=i64::from(i32::MAX)).contains(&value) {
            return None;
        }
        let mut value = value.checked_mul(unit)?;
        if which.is_time() {
            let hz = i64::from(hz);
            value = (value * hz + 999) / 1_000 * 1_000 / hz;
        }
        self.set(six, ifindex, which, value);
        Some(())
    }
    /// `neightbl_set`: a setting under `ip ntable`'s name, times in ms. What is said of 0 is what devices to come begin with; `there` keep what they have.
    pub(crate) fn change(&mut self, six: bool, ifindex: u32, name: &str, value: u64, there: &[u32]) {
        let (which, unit) = match name {
            "base_reachable" => (Parm::Reachable, 1),
            "retrans" => (Parm::Retrans, 1),
            "gc_stale" => (Parm::Stale, 1),
            "delay_probe" => (Parm::Delay, 1),
            "queue" => (Parm::QueueBytes, FRAME),
            "app_probes" => (Parm::App, 1),
            "ucast_probes" => (Parm::Ucast, 1),
            "mcast_probes" => (Parm::Mcast, 1),
            "anycast_delay" => (Parm::Anycast, 1),
            "proxy_delay" => (Parm::ProxyDelay, 1),
            "proxy_queue" => (Parm::ProxyQueue, 1),
            "locktime" => (Parm::Lock, 1),
            _ => return,
        };
        if ifindex == 0 {
            for &device in there {
                let now = self.parm(six, device, which);
                self.set.entry((six, device, which)).or_insert(now);
            }
        }
        let mut value = i64::from(value.min(u64::from(u32::MAX)) as u32) * unit;
        if which.is_time() {
            let hz = i64::from(self.kernel.hz());
            value = (value * hz + 999) / 1_000 * 1_000 / hz;
        }
        self.set(six, ifindex, which, value);
    }
    /// How often entries were made, how many of them are gone, and when times were drawn last, ticks.
    pub(crate) fn counts(&self, six: bool) -> (u64, u64, i64) {
        let made = self.entries.iter().filter(|n| n.addr.is_ipv6() == six).count() as u64;
        let there = self.index.keys().filter(|k| k.0 == six).count() as u64;
        (made, made - there, self.drawn)
    }
    fn set(&mut self, six: bool, ifindex: u32, which: Parm, value: i64) {
        self.set.insert((six, ifindex, which), value);
        if which == Parm::Reachable {
            self.own_reachable.clear();
        }
    }
    /// A device is gone, and its settings with it.
    pub(crate) fn forget_parms(&mut self, ifindex: u32) {
        self.set.retain(|&(_, of, _), _| of != ifindex);
        self.own_reachable.retain(|&(_, of), _| of != ifindex);
    }
    /// IPv6 has left a device.
    pub(crate) fn forget_parms6(&mut self, ifindex: u32) {
        self.set.retain(|&(six, of, _), _| !six || of != ifindex);
        self.own_reachable.retain(|&(six, of), _| !six || of != ifindex);
    }
    /// A router has said how long answers hold and when to ask again, ms; 0: it has not.
    //= linux v6.12 net/ipv6/ndisc.c ndisc_router_discovery
    pub(crate) fn told_six(&mut self, ifindex: u32, retrans: u32, reachable: u32, hz: u32) {
        let hz = i64::from(hz);
        let whole = |ms: u32, least: i64| (i64::from(ms) * hz / 1_000).max(least) * 1_000 / hz;
        if retrans != 0 {
            self.set(true, ifindex, Parm::Retrans, whole(retrans, hz / 100));
        }
        let base = whole(reachable, hz / 10);
        if reachable != 0 && base != self.parm(true, ifindex, Parm::Reachable) {
            self.set(true, ifindex, Parm::Reachable, base);
            self.set(true, ifindex, Parm::Stale, 3 * base);
        }
    }
    /// `neigh_rand_reach_time`: between half and three halves of the base. Ticks that a confirmation lasts on a device; drawn anew every 300 s.
    pub(crate) fn reachable_time(&mut self, six: bool, ifindex: u32, now: Time) -> i64 {
        let tick = crate::timer::jiffies(self.kernel, now);
        if tick - self.drawn > 300 * i64::from(self.kernel.hz()) {
            self.drawn = tick;
            self.draw_reachable();
            self.own_reachable.clear();
        }
        if self.set.is_empty() {
            return self.reachable;
        }
        let base = self.ticks(six, ifindex, Parm::Reachable);
        let rng = &mut self.rng;
        let draw = || i64::from(rng.below(base.clamp(1, i64::from(u32::MAX)) as u32)) + base / 2;
        *self.own_reachable.entry((six, ifindex)).or_insert_with(draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::{Kernel, Rng};

    #[test]
    fn a_device_has_its_own_settings_or_those_of_default() {
        let mut table = NeighTable::new(Kernel::V6_12, Rng::named(1, "n"));
        assert_eq!(table.setting(true, 2, "retrans_time"), Some(100));
        // Whole ticks of 4 ms.
        table.set_setting(true, 0, "retrans_time_ms", 250, 250).unwrap();
        table.set_setting(true, 3, "retrans_time", 200, 250).unwrap();
        assert_eq!(table.setting(true, 2, "retrans_time_ms"), Some(252));
        assert_eq!(table.setting(true, 3, "retrans_time_ms"), Some(2_000));
        assert_eq!(table.setting(false, 3, "retrans_time_ms"), Some(1_000));
        table.set_setting(false, 2, "base_reachable_time_ms", 30_001, 250).unwrap();
        assert_eq!(table.setting(false, 2, "base_reachable_time_ms"), Some(30_004));
        assert_eq!(table.set_setting(false, 2, "ucast_solicit", -1, 250), None);
        table.forget_parms(3);
        assert_eq!(table.setting(true, 3, "retrans_time_ms"), Some(252));
    }

    #[test]
    fn a_confirmation_lasts_half_to_three_halves_of_the_base() {
        let mut table = NeighTable::new(Kernel::V6_12, Rng::named(1, "n"));
        table.told_six(2, 0, 4_000, 250);
        for s in 0..40 {
            let ticks = table.reachable_time(true, 2, Time::from_ns(400_000_000_000 * s));
            assert!((500..1_500).contains(&ticks), "{ticks}");
        }
        assert_eq!(table.setting(true, 2, "gc_stale_time"), Some(12));
    }
}
