//! What the packet scheduler of a machine measures time with.
//!
//! Follows: linux v2.4.0 `include/net/pkt_sched.h` (the same in 2.2): `PSCHED_CLOCK_SOURCE`, `PSCHED_JSCALE`,
//! `PSCHED_US2JIFFIE`; `net/sched/sch_api.c` `psched_calibrate_clock`. Later kernels measure in ticks of 64 ns of the
//! monotonic clock and have high-resolution timers.

/// The clock of a packet scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PschedClock {
    /// 2.6.35 and later: 64 ns ticks, timers to the nanosecond.
    #[default]
    Ktime,
    /// 2.2 and 2.4: a clock source chosen when the kernel is built, timers on timer interrupts only.
    Old(OldClock),
}

/// The clock of a kernel before high-resolution timers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OldClock {
    /// Which kernel.
    pub release: OldRelease,
    /// What `PSCHED_GET_TIME` reads.
    pub source: ClockSource,
    /// `HZ`: timer interrupts per second, [`OldClock::HZ`]. Default 100.
    pub hz: u32,
    /// Processor's clock, MHz, [`OldClock::MHZ`]; counts with [`ClockSource::Cpu`]. Default 550.
    pub mhz: u32,
}

/// A kernel with such a clock: its packet scheduler's clock, timers, `tbf` and `cbq`; everything else of a machine
/// is that of the profile 2.6.35.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OldRelease {
    /// Linux 2.2 (1999).
    V2_2,
    /// Linux 2.4 (2001).
    V2_4,
}

/// `PSCHED_CLOCK_SOURCE`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ClockSource {
    /// `PSCHED_JIFFIES`: the count of timer interrupts, the default of these kernels.
    #[default]
    Jiffies,
    /// `PSCHED_GETTIMEOFDAY`: microseconds.
    GetTimeOfDay,
    /// `PSCHED_CPU`: the processor's cycle counter.
    Cpu,
}

impl OldRelease {
    /// All of them, oldest first.
    pub const ALL: [OldRelease; 2] = [OldRelease::V2_2, OldRelease::V2_4];
    /// `2.2`, `2.4`.
    pub const fn name(self) -> &'static str {
        match self {
            OldRelease::V2_2 => "2.2",
            OldRelease::V2_4 => "2.4",
        }
    }
}

impl ClockSource {
    /// The names an experiment file has for them.
    pub const ALL: [(&'static str, ClockSource); 3] = [
        ("jiffies", ClockSource::Jiffies),
        ("gettimeofday", ClockSource::GetTimeOfDay),
        ("cpu", ClockSource::Cpu),
    ];
}

impl OldClock {
    /// Timer interrupts per second that there may be.
    pub const HZ: std::ops::RangeInclusive<u32> = 10..=100_000;
    /// Processors' clocks that there may be, MHz.
    pub const MHZ: std::ops::RangeInclusive<u32> = 10..=4000;

    /// As the kernel came: jiffies at 100 Hz, on a processor of 550 MHz.
    pub const fn new(release: OldRelease) -> OldClock {
        OldClock { release, source: ClockSource::Jiffies, hz: 100, mhz: 550 }
    }
    /// `PSCHED_JSCALE`: a jiffy is 2^this ticks, with jiffies as source.
    pub const fn jscale(&self) -> u32 {
        match self.hz {
            100 => 13,
            1024 => 10,
            _ => 0,
        }
    }
    /// `psched_clock_scale`: a tick is 2^this cycles, with the cycle counter as source: so many that it is near 1 us.
    pub const fn cpu_scale(&self) -> u32 {
        self.mhz.ilog2()
    }
    /// Ticks in a microsecond, as a fraction: `/proc/net/psched`'s first two numbers.
    pub const fn ticks_per_us(&self) -> (u64, u64) {
        match self.source {
            ClockSource::Jiffies => ((self.hz as u64) << self.jscale(), 1_000_000),
            ClockSource::GetTimeOfDay => (1, 1),
            ClockSource::Cpu => (self.mhz as u64, 1 << self.cpu_scale()),
        }
    }
    /// `tc_core_usec2tick`: microseconds in ticks, rounded down.
    pub const fn ticks(&self, us: u64) -> u64 {
        let (ticks, per) = self.ticks_per_us();
        us * ticks / per
    }
    /// `tc_core_tick2usec`: ticks in microseconds, rounded down.
    pub const fn us(&self, ticks: u64) -> u64 {
        let (per, us) = self.ticks_per_us();
        ticks * us / per
    }
    /// Timer interrupts in `ns` since the machine came up.
    pub const fn jiffies(&self, ns: i64) -> i64 {
        let (hz, second) = (self.hz as i64, 1_000_000_000);
        ns / second * hz + ns % second * hz / second
    }
    /// When the `jiffy`th timer interrupt is, ns since the machine came up.
    pub const fn interrupt(&self, jiffy: i64) -> i64 {
        let hz = self.hz as i64;
        jiffy / hz * 1_000_000_000 + (jiffy % hz * 1_000_000_000 + hz - 1) / hz
    }
    /// `PSCHED_GET_TIME`: ticks, `ns` after the machine came up.
    pub const fn read(&self, ns: i64) -> i64 {
        match self.source {
            ClockSource::Jiffies => self.jiffies(ns) << self.jscale(),
            ClockSource::GetTimeOfDay => ns / 1000,
            ClockSource::Cpu => {
                // In two steps: whole seconds are whole millions of cycles.
                let (mhz, second) = (self.mhz as i64, 1_000_000_000);
                (ns / second * mhz * 1_000_000 + ns % second * mhz / 1000) >> self.cpu_scale()
            }
        }
    }
    /// `PSCHED_US2JIFFIE`: how many timer interrupts `span` ticks take, rounded up.
    pub const fn to_jiffies(&self, span: i64) -> i64 {
        let per_jiffy = match self.source {
            ClockSource::Jiffies => 1 << self.jscale(),
            ClockSource::GetTimeOfDay => 1_000_000 / self.hz as i64,
            ClockSource::Cpu => (self.mhz as i64 * (1_000_000 / self.hz as i64)) >> self.cpu_scale(),
        };
        (span + per_jiffy - 1) / per_jiffy
    }
    /// `PSCHED_TDIFF`: what passed from one reading to another. With microseconds what is over two seconds, or
    /// below 0, is two seconds.
    pub const fn diff(&self, to: i64, from: i64) -> i64 {
        const SECOND: i64 = 1_000_000;
        match self.source {
            ClockSource::GetTimeOfDay => match to / SECOND - from / SECOND {
                0..=2 => to - from,
                _ => 2 * SECOND,
            },
            _ => to - from,
        }
    }
}

impl PschedClock {
    /// The kernel before 2.6 that has it.
    pub const fn release(self) -> Option<OldRelease> {
        match self {
            PschedClock::Ktime => None,
            PschedClock::Old(old) => Some(old.release),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(source: ClockSource, hz: u32) -> OldClock {
        OldClock { source, hz, ..OldClock::new(OldRelease::V2_2) }
    }

    #[test]
    fn time_goes_as_its_source_does() {
        let jiffies = clock(ClockSource::Jiffies, 100);
        // Nothing happens between two interrupts.
        assert_eq!([0, 9_999_999, 10_000_000, 25_000_000].map(|ns| jiffies.read(ns)), [0, 0, 8192, 16384]);
        let day = clock(ClockSource::GetTimeOfDay, 100);
        assert_eq!([0, 999, 1000, 25_000_999].map(|ns| day.read(ns)), [0, 0, 1, 25_000]);
        // 550 MHz: a tick is 512 cycles, 0.93 us.
        let cpu = clock(ClockSource::Cpu, 100);
        assert_eq!((cpu.cpu_scale(), cpu.read(931), cpu.read(1_000_000_000)), (9, 1, 1_074_218));
        assert_eq!(clock(ClockSource::Jiffies, 1024).read(1_000_000_000), 1 << 20);
        assert_eq!(clock(ClockSource::Jiffies, 10_000).read(1_000_000_000), 10_000);
    }

    #[test]
    fn timers_go_off_on_interrupts() {
        for (source, hz) in [
            (ClockSource::Jiffies, 100),
            (ClockSource::GetTimeOfDay, 100),
            (ClockSource::Cpu, 100),
            (ClockSource::Cpu, 1024),
            (ClockSource::Cpu, 10_000),
        ] {
            let c = clock(source, hz);
            // 11.2 ms, rounded up to interrupts.
            let span = c.ticks(11_200) as i64;
            let want = (11_200 * i64::from(hz) + 999_999) / 1_000_000;
            assert!((c.to_jiffies(span) - want).abs() <= 1, "{c:?}: {} {want}", c.to_jiffies(span));
            assert_eq!((c.to_jiffies(1), c.to_jiffies(0)), (1, 0));
            for jiffy in [1, 7, i64::from(hz) * 1000 + 3] {
                let at = c.interrupt(jiffy);
                assert_eq!((c.jiffies(at), c.jiffies(at - 1)), (jiffy, jiffy - 1), "{c:?}");
            }
        }
    }

    #[test]
    fn microseconds_come_back_from_ticks_within_one_tick() {
        for source in [ClockSource::Jiffies, ClockSource::GetTimeOfDay, ClockSource::Cpu] {
            let c = clock(source, 100);
            for us in [0, 1, 7, 11_200, 1_000_000] {
                assert!(us - c.us(c.ticks(us)) <= 2, "{c:?} {us}");
            }
        }
        let day = clock(ClockSource::GetTimeOfDay, 100);
        assert_eq!(
            [day.diff(5, 2), day.diff(9_000_000, 0), day.diff(0, 1_000_000)],
            [3, 2_000_000, 2_000_000]
        );
    }
}
