//! Kernel profiles: clock, HZ, defaults and output forms of one Linux.

use std::fmt;

/// Which Linux a machine runs. Decides algorithms, defaults, and the forms its tools print.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Kernel {
    /// Linux 2.6.35 (2010) with iproute2 2.6.35: 64 ns ticks, rate tables, HTB 3.17.
    V2_6_35,
    /// Linux 6.12 with iproute2 6.x: nanosecond clocks, today's defaults and forms.
    #[default]
    V6_12,
    /// Linux 7.2 (2026) with iproute2 7.3: `dualpi2`, `cake_mq`, JSON of classes.
    V7_2,
}

impl Kernel {
    /// All profiles, oldest first.
    pub const ALL: [Kernel; 3] = [Kernel::V2_6_35, Kernel::V6_12, Kernel::V7_2];
    /// Those that are still maintained: what is not in 2.6.35 and was not taken out since.
    pub const LIVING: [Kernel; 2] = [Kernel::V6_12, Kernel::V7_2];
    /// Those in which the kinds can be set up that Linux 6.3 to 6.7 took out: `cbq`, `dsmark`, `atm`, `tcindex`, `rsvp`. Linux 6.12 has
    /// them no more; its profile keeps them for those who compare.
    pub const BEFORE_7: [Kernel; 2] = [Kernel::V2_6_35, Kernel::V6_12];

    /// Reads a profile's name as an experiment file gives it.
    ///
    /// # Errors
    /// A sentence naming the profiles there are.
    pub fn parse(text: &str) -> Result<Kernel, String> {
        Kernel::ALL.into_iter().find(|k| k.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Kernel::ALL.iter().map(|k| k.name()).collect();
            format!("unknown kernel profile \"{text}\"; there are {}", names.join(", "))
        })
    }
    /// The profile's name: `2.6.35`, `6.12`, `7.2`.
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::V2_6_35 => "2.6.35",
            Kernel::V6_12 => "6.12",
            Kernel::V7_2 => "7.2",
        }
    }
    /// Timer interrupts per second: 250 for all (Debian's and Ubuntu's choice).
    pub const fn hz(self) -> u32 {
        250
    }
    /// `HZ` as user space learns it from `/proc/net/psched` (the fourth number): 10^9 / timer resolution.
    /// With high-resolution timers the resolution is 1 ns.
    pub const fn user_hz(self) -> u32 {
        1_000_000_000
    }
    /// Default txqueuelen of an Ethernet device, packets.
    pub const fn txqueuelen(self) -> u32 {
        1000
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
