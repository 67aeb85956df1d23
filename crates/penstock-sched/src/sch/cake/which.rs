//! Which tin a packet goes to, for those who have no packet: told from the options of a dump.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c` `cake_select_tin`; iproute2 `tc/q_cake.c` `cake_print_xstats` for the names.

use super::Config;
use super::config::Tins;
use penstock_model::{Handle, Options};

/// The tins of a cake, numbered as they are shown: the least first.
pub struct Which {
    handle: Handle,
    config: Config,
    tins: Tins,
}

impl Which {
    /// For a cake of this handle with these options, as a dump has them.
    pub fn new(handle: Handle, options: &Options) -> Which {
        let mut config = Config::new();
        // What a dump has was taken once.
        let _ = config.change(options);
        let tins = config.tins();
        Which { handle, config, tins }
    }
    /// How many there are.
    pub fn count(&self) -> usize {
        self.tins.shares.len()
    }
    /// The name of one, as `tc -s qdisc show` heads its column.
    pub fn name(&self, tin: usize) -> String {
        let names: &[&str] = match self.count() {
            3 => &["Bulk", "Best Effort", "Voice"],
            4 => &["Bulk", "Best Effort", "Video", "Voice"],
            _ => &[],
        };
        names.get(tin).map_or_else(|| format!("Tin {tin}"), |name| (*name).to_owned())
    }
    /// The bits of the mark that `fwmark` has it look at, and how far down they are moved.
    pub fn mark_bits(&self) -> (u32, u32) {
        if self.config.besteffort { (0, 0) } else { self.config.fwmark }
    }
    fn numbered(&self, number: u32) -> Option<usize> {
        let known = !self.config.besteffort && (1..=self.count() as u32).contains(&number);
        known.then(|| number as usize - 1)
    }
    /// The tin a mark names.
    pub fn by_mark(&self, mark: u32) -> Option<usize> {
        self.numbered(self.config.tin_by_mark(mark))
    }
    /// The tin a priority names: the handle's major number and the tin's, from 1.
    pub fn by_priority(&self, priority: u32) -> Option<usize> {
        let priority = Handle(priority);
        self.numbered(priority.minor().into()).filter(|_| priority.qdisc() == self.handle)
    }
    /// The tin of a code point.
    pub fn by_dscp(&self, dscp: u8) -> usize {
        if self.config.besteffort {
            return 0;
        }
        let tin = self.tins.by_dscp[usize::from(dscp & 63)];
        let tin = if usize::from(tin) < self.count() { tin } else { 0 };
        self.tins.order.iter().position(|t| *t == tin).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(diffserv: u32, dscp: u8, name: &str) {
        let which = Which::new(Handle::new(1, 0), &Options::new().with("diffserv", diffserv));
        assert_eq!(which.name(which.by_dscp(dscp)), name);
    }

    #[test]
    fn code_points_by_mode() {
        // diffserv3, 4, 8, besteffort, precedence.
        for (diffserv, names) in [
            (0, ["Best Effort", "Voice", "Bulk", "Best Effort"]),
            (1, ["Best Effort", "Voice", "Bulk", "Video"]),
            (2, ["Tin 2", "Tin 6", "Tin 1", "Tin 3"]),
            (3, ["Tin 0"; 4]),
            (4, ["Tin 0", "Tin 5", "Tin 1", "Tin 4"]),
        ] {
            for (dscp, name) in [0, 46, 8, 34].into_iter().zip(names) {
                check(diffserv, dscp, name);
            }
        }
    }

    #[test]
    fn marks_and_priorities_name_tins() {
        let o = Options::new().with("diffserv", 1u32).with("fwmark", 0xf0u32);
        let which = Which::new(Handle::new(0x8001, 0), &o);
        assert_eq!((which.mark_bits(), which.by_mark(0x40), which.by_mark(0x50)), ((0xf0, 4), Some(3), None));
        assert_eq!((which.by_priority(0x8001_0001), which.by_priority(1)), (Some(0), None));
        let one = Which::new(Handle::new(1, 0), &Options::new().with("diffserv", 3u32).with("fwmark", 15u32));
        assert_eq!((one.by_mark(1), one.mark_bits()), (None, (0, 0)));
    }
}
