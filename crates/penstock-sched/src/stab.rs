//! Size tables (`stab`): what a packet counts for, where that differs from its length.
//!
//! The table itself does not travel: it follows from the parameters as tc computes it.
//!
//! Follows: linux v6.12 `net/sched/sch_api.c` `qdisc_get_stab`, `__qdisc_calculate_pkt_len`, linux v2.6.35
//! `qdisc_calculate_pkt_len`; iproute2 6.1 `tc/tc_core.c` `tc_calc_size_table`.

use crate::qdisc::Device;
use crate::rates::adjust_size;
use penstock_model::{Kernel, KernelError, Options};
use penstock_packet::Skb;

/// Longest a table may make a packet in 6.12 (`QDISC_PKT_LEN_MAX`), bytes.
const PKT_LEN_MAX: i64 = 1 << 20;
/// Largest `size_log` and `cell_log` (`STAB_SIZE_LOG_MAX`).
const SIZE_LOG_MAX: u32 = 30;
/// Most slots that tc lets a table have.
const TSIZE_MAX: u32 = 65_536;

/// A size table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stab {
    pub(crate) kernel: Kernel,
    overhead: i64,
    mtu: u32,
    mpu: u32,
    linklayer: u32,
    cell_log: u32,
    size_log: u32,
    data: Vec<u16>,
}

impl Stab {
    /// From tc's words `mtu tsize mpu overhead linklayer` (1 Ethernet, 2 ATM).
    ///
    /// # Errors
    /// EINVAL for sizes no table can have.
    pub fn new(options: &Options, device: &Device) -> Result<Stab, KernelError> {
        let number = |name| options.u32(name).unwrap_or(0);
        let overhead = options.i64("overhead").unwrap_or(0);
        let linklayer = options.u32("linklayer").unwrap_or(0);
        let (mut mtu, mut tsize, mpu) = (number("mtu"), number("tsize"), number("mpu"));
        let (mut cell_log, mut size_log) = (0, 0);
        let mut data = Vec::new();
        if linklayer <= 1 && mpu == 0 {
            mtu = 0;
        } else {
            if mtu == 0 {
                mtu = 2047;
            }
            if tsize == 0 {
                tsize = 512;
            }
            if tsize > TSIZE_MAX {
                return Err(device.refusal(KernelError::EINVAL, "Invalid size of size table"));
            }
            while (mtu >> cell_log) > tsize - 1 && cell_log < 32 {
                cell_log += 1;
            }
            let size =
                |i: u32| adjust_size((i + 1).checked_shl(cell_log).unwrap_or(u32::MAX), mpu, linklayer);
            while (0..tsize).any(|i| size(i) >> size_log > u32::from(u16::MAX)) {
                size_log += 1;
            }
            data = (0..tsize).map(|i| (size(i) >> size_log) as u16).collect();
        }
        if size_log > SIZE_LOG_MAX || cell_log > SIZE_LOG_MAX {
            return Err(device.refusal(KernelError::EINVAL, "Invalid logarithmic size of size table"));
        }
        Ok(Stab { kernel: device.kernel, overhead, mtu, mpu, linklayer, cell_log, size_log, data })
    }

    /// Sets the packet's `pkt_len`.
    pub fn apply(&self, skb: &mut Skb) {
        let mut len = i64::from(skb.len) + self.overhead;
        if !self.data.is_empty() {
            let slot = ((len - 1).max(0) >> self.cell_log) as usize;
            let tsize = self.data.len();
            let entry = |i: usize| i64::from(self.data[i]);
            len = if slot < tsize {
                entry(slot)
            } else {
                entry(tsize - 1) * (slot / tsize) as i64 + entry(slot % tsize)
            };
            len <<= self.size_log;
        }
        let most = if self.kernel >= Kernel::V6_12 { PKT_LEN_MAX } else { i64::from(i32::MAX) };
        skb.pkt_len = len.clamp(1, most) as u32;
    }

    /// The parameters as the kernel dumps them.
    pub fn dump(&self) -> Options {
        let mut o = Options::new();
        if self.linklayer != 0 {
            o = o.with("linklayer", self.linklayer);
        }
        o.with("overhead", self.overhead)
            .with("mpu", self.mpu)
            .with("mtu", self.mtu)
            .with("tsize", self.data.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{device, packet};

    fn length(stab: &Stab, len: u32) -> u32 {
        let mut p = packet(0, len);
        stab.apply(&mut p);
        p.pkt_len
    }

    #[test]
    fn overhead_alone_needs_no_table() {
        for kernel in Kernel::ALL {
            let stab = Stab::new(&Options::new().with("overhead", -14i64), &device(kernel)).unwrap();
            assert_eq!([1000, 14, 3].map(|len| length(&stab, len)), [986, 1, 1]);
        }
    }

    #[test]
    fn atm_counts_cells_of_what_fits_a_slot() {
        // tsize 512 for 2047 bytes: slots of 4 bytes. 1000 bytes and 24 are 22 cells of 48.
        let options = Options::new().with("overhead", 24i64).with("linklayer", 2u32);
        let stab = Stab::new(&options, &device(Kernel::V6_12)).unwrap();
        assert_eq!(length(&stab, 1000), 22 * 53);
        assert_eq!((stab.cell_log, stab.data.len()), (2, 512));
        // Past the table: 4096 bytes fall in slot 1029, two tables and slot 5 (24 bytes: one cell).
        assert_eq!(length(&stab, 4096), 2 * 43 * 53 + 53);
    }

    #[test]
    fn nonsense_is_refused() {
        let options = Options::new().with("tsize", 1u32 << 20).with("mpu", 64u32);
        assert!(Stab::new(&options, &device(Kernel::V6_12)).is_err());
    }
}
