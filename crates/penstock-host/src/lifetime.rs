//! How long addresses are valid and preferred, and what becomes of them then.
//!
//! Follows: linux v6.12 `net/ipv6/addrconf.c` `addrconf_verify_rtnl`, `inet6_addr_modify`, `inet6_fill_ifaddr`; `net/ipv4/devinet.c`
//! `check_lifetime`, `set_ifa_lifetime`, `inet_fill_ifaddr`; `kernel/time/timer.c` `round_jiffies_up`; `net/ipv6/ip6_fib.c` `fib6_run_gc`.

use crate::{Host, Timer, timer};
use penstock_model::Time;
use std::net::Ipv6Addr;

/// Forever.
const INFINITE: u32 = u32::MAX;

/// How long an address is valid and preferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    /// Seconds it is valid (`valid_lft`) and preferred (`preferred_lft`) from `since` on; `u32::MAX` is forever.
    pub seconds: (u32, u32),
    /// The tick it was said at.
    pub(crate) since: i64,
    /// No new connection is to use it (`IFA_F_DEPRECATED`).
    pub(crate) deprecated: bool,
    /// It was not made for some time (`IFA_F_PERMANENT`).
    pub(crate) permanent: bool,
}

impl Lifetime {
    /// It stays.
    pub const FOREVER: Lifetime =
        Lifetime { seconds: (INFINITE, INFINITE), since: 0, deprecated: false, permanent: true };

    /// From the tick `since` on.
    pub(crate) fn new(seconds: Option<(u32, u32)>, since: i64) -> Lifetime {
        let seconds = seconds.unwrap_or((INFINITE, INFINITE));
        Lifetime { seconds, since, deprecated: seconds.1 == 0, permanent: seconds.0 == INFINITE }
    }
    /// Whether it was made to stay (`IFA_F_PERMANENT`): not as a router said, whatever that may be.
    pub(crate) fn is_permanent(self) -> bool {
        self.permanent
    }
    /// The tick it ends at, of one that does.
    pub(crate) fn end(self, hz: u32) -> i64 {
        self.since + i64::from(self.seconds.0) * i64::from(hz)
    }
    /// Seconds that are left at a tick.
    pub(crate) fn left(self, tick: i64, hz: u32) -> (u32, u32) {
        let gone = u32::try_from((tick - self.since) / i64::from(hz)).unwrap_or(0);
        let left = |n: u32| if n == INFINITE { n } else { n.saturating_sub(gone) };
        // Where it is preferred forever nobody counts.
        if self.seconds.1 == INFINITE { self.seconds } else { (left(self.seconds.0), left(self.seconds.1)) }
    }
}

/// What is done about an address.
enum Due {
    Nothing,
    Deprecated,
    Gone,
}

/// The next whole second, of one that is whole too.
fn round_up(tick: i64, hz: i64) -> i64 {
    tick - tick.rem_euclid(hz) + hz
}

/// The nearest second, up from a quarter on.
fn round(tick: i64, hz: i64) -> i64 {
    let part = tick.rem_euclid(hz);
    if part < hz / 4 { tick - part } else { tick - part + hz }
}

/// When addresses are looked at again.
struct Watch {
    now: i64,
    hz: i64,
    next: i64,
    /// Some do not stay.
    any: bool,
}

impl Watch {
    /// Ticks between two looks, seconds.
    const EVERY: i64 = 120;

    fn new(now: i64, hz: u32, six: bool) -> Watch {
        let hz = i64::from(hz);
        let next = now + Watch::EVERY * hz;
        Watch { now, hz, next: if six { round_up(next, hz) } else { next }, any: false }
    }
    fn look(&mut self, of: Lifetime) -> Due {
        let (valid, preferred) = of.seconds;
        let at = |seconds: u32| of.since + i64::from(seconds) * self.hz;
        let fuzz = if self.hz > 50 { self.hz / 50 } else { 1 };
        let age = (self.now - of.since + fuzz) / self.hz;
        self.any = true;
        if valid != INFINITE && age >= i64::from(valid) {
            return Due::Gone;
        }
        if preferred == INFINITE {
            return Due::Nothing;
        }
        if age < i64::from(preferred) {
            self.next = self.next.min(at(preferred));
            return Due::Nothing;
        }
        if valid != INFINITE {
            self.next = self.next.min(at(valid));
        }
        if of.deprecated { Due::Nothing } else { Due::Deprecated }
    }
    /// The tick of the next look.
    fn then(&self) -> i64 {
        let second = round_up(self.next, self.hz);
        let then = if second < self.next + self.hz / 4 { second } else { self.next };
        then.max(self.now + self.hz)
    }
}

impl Host {
    /// The tick at `now`, of a machine with this many timer interrupts.
    pub(crate) fn tick(&self, now: Time) -> i64 {
        timer::ticks(self.hz, now)
    }
    /// An address of IPv6, or of IPv4, has come or was changed. Where all stay there is nothing to look at.
    pub(crate) fn lives(&mut self, lifetime: Lifetime, six: bool, now: Time) {
        if lifetime.seconds != (INFINITE, INFINITE) || self.timers.has(Timer::Lifetimes(six)) {
            self.watch_lifetimes(six, now);
        } else if six {
            self.watch_routes6(now);
        }
    }
    /// Looks at the addresses of IPv6, or of IPv4, and sets the timer for the next look.
    pub(crate) fn watch_lifetimes(&mut self, six: bool, now: Time) {
        let (tick, hz) = (self.tick(now), self.hz);
        let mut watch = Watch::new(tick, hz, six);
        let mut gone = Vec::new();
        let mut gone6: Vec<(u32, Ipv6Addr, u8)> = Vec::new();
        for device in self.devices.iter_mut() {
            if six {
                //= linux v6.12 net/ipv6/addrconf.c: one that is valid forever may be preferred for some time alone
                for a in device.addresses6.iter_mut().filter(|a| a.lifetime.seconds != (INFINITE, INFINITE)) {
                    match watch.look(a.lifetime) {
                        Due::Nothing => {}
                        Due::Deprecated => a.lifetime.deprecated = true,
                        Due::Gone => gone6.push((device.ifindex, a.addr, a.len)),
                    }
                }
            } else {
                for a in device.addresses.iter_mut().filter(|a| !a.lifetime.is_permanent()) {
                    match watch.look(a.lifetime) {
                        Due::Nothing => {}
                        Due::Deprecated => a.lifetime.deprecated = true,
                        Due::Gone => gone.push((device.ifindex, a.prefix)),
                    }
                }
            }
        }
        for (ifindex, prefix) in gone {
            // A secondary may have gone with its primary.
            let _ = self.delete_address(ifindex, prefix);
        }
        for (ifindex, addr, len) in gone6 {
            let _ = self.delete_address6(ifindex, addr, len);
        }
        let own = Timer::Lifetimes(six);
        self.timers.retain(|timer| timer != own);
        if watch.any {
            let at = timer::fires_at(self.kernel, hz, now, watch.then());
            self.timers.insert(at, own);
        }
        if six {
            self.watch_routes6(now);
        }
    }
    /// Routes that expire: from the tick after that on nothing goes by them, and they are cleared away later.
    pub(crate) fn watch_routes6(&mut self, now: Time) {
        if !self.six.fib.some_expire() {
            return;
        }
        let tick = self.tick(now);
        //= linux v6.12 net/ipv6/ip6_fib.c fib6_start_gc: whoever says of an old route that it expires starts nothing
        if std::mem::take(&mut self.six.fib.more_expire) && !std::mem::replace(&mut self.six.gc, true) {
            let then = tick + GC_INTERVAL * i64::from(self.hz);
            let at = timer::fires_at(self.kernel, self.hz, now, then);
            self.timers.insert(at, Timer::Gc6);
        }
        let next = self.six.fib.expire(tick);
        let own = Timer::Expiry6;
        self.timers.retain(|timer| timer != own);
        if let Some(next) = next {
            let at = (next + 1).saturating_mul(1_000_000_000 / i64::from(self.hz));
            self.timers.insert(Time::from_ns(at), own);
        }
    }
    /// `fib6_run_gc`.
    pub(crate) fn run_gc6(&mut self, now: Time) {
        let tick = self.tick(now);
        let more = self.six.fib.clear_expired(tick);
        self.six.gc = more;
        if more {
            let hz = i64::from(self.hz);
            let then = round(tick + GC_INTERVAL * hz, hz);
            let at = timer::fires_at(self.kernel, self.hz, now, then);
            self.timers.insert(at, Timer::Gc6);
        }
    }
}

/// `net.ipv6.route.gc_interval`, seconds.
const GC_INTERVAL: i64 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_at_addresses_is_in_time_or_a_second_later() {
        let mut watch = Watch::new(1_010, 100, false);
        assert!(matches!(watch.look(Lifetime::new(Some((20, 10)), 1_010)), Due::Nothing));
        // 2010 is 10 s later; the next whole second is further than a quarter of one.
        assert_eq!(watch.then(), 2_010);
        let mut watch = Watch::new(1_080, 100, false);
        assert!(matches!(watch.look(Lifetime::new(Some((20, 10)), 1_080)), Due::Nothing));
        assert_eq!(watch.then(), 2_100);
        // Two hundredths before its time it is over.
        let mut watch = Watch::new(2_008, 100, true);
        assert!(matches!(watch.look(Lifetime::new(Some((20, 10)), 1_010)), Due::Deprecated));
        assert_eq!(watch.then(), 3_010);
        let mut watch = Watch::new(3_008, 100, true);
        assert!(matches!(watch.look(Lifetime::new(Some((20, 10)), 1_010)), Due::Gone));
    }

    #[test]
    fn what_is_left_is_counted_in_whole_seconds() {
        let of = Lifetime::new(Some((20, 10)), 1_000);
        assert_eq!((of.left(1_099, 100), of.left(1_100, 100)), ((20, 10), (19, 9)));
        assert_eq!(of.left(2_150, 100), (9, 0));
        assert_eq!(Lifetime::new(Some((INFINITE, 10)), 0).left(300, 100), (INFINITE, 7));
        assert_eq!(Lifetime::FOREVER.left(1 << 40, 100), (INFINITE, INFINITE));
    }
}
