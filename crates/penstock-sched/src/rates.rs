//! How long a packet takes: `psched_ratecfg` of 6.12 and the rate tables of 2.6.35.
//!
//! Follows: linux v6.12 `net/sched/sch_generic.c` `psched_ratecfg_precompute`, `include/net/sch_generic.h`
//! `psched_l2t_ns`; linux v2.6.35 `include/net/sch_generic.h` `qdisc_l2t`; iproute2 2.6.35 and 6.1
//! `tc/tc_core.c` `tc_calc_rtable`, `tc_align_to_atm`.

use penstock_model::psched::xmittime;

/// `TC_LINKLAYER_ATM`: packets travel as whole 53-byte cells of 48 bytes each.
pub const LINKLAYER_ATM: u32 = 2;
/// Bytes an ATM cell carries.
const ATM_CELL_PAYLOAD: u32 = 48;
/// Bytes an ATM cell takes.
const ATM_CELL_SIZE: u32 = 53;

/// `tc_adjust_size`: what `size` bytes take on the line, bytes.
pub fn adjust_size(size: u32, mpu: u32, linklayer: u32) -> u32 {
    let size = size.max(mpu);
    if linklayer == LINKLAYER_ATM {
        size.div_ceil(ATM_CELL_PAYLOAD).saturating_mul(ATM_CELL_SIZE)
    } else {
        size
    }
}

/// 6.12: a rate as a multiplication and a shift (`struct psched_ratecfg`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RateCfg {
    /// Bytes per second; 0 where no rate is set.
    pub rate_bytes: u64,
    /// Bytes added to each packet.
    pub overhead: u16,
    /// Least bytes a packet counts for.
    pub mpu: u16,
    /// 1 Ethernet, [`LINKLAYER_ATM`].
    pub linklayer: u8,
    mult: u32,
    shift: u8,
}

impl RateCfg {
    /// `psched_ratecfg_precompute`: the finest multiplier of 32 bits that gives ns for bytes.
    pub fn new(rate_bytes: u64, overhead: u16, mpu: u16, linklayer: u8) -> RateCfg {
        let (mult, shift) = precompute(rate_bytes);
        RateCfg { rate_bytes, overhead, mpu, linklayer, mult, shift }
    }
    /// `psched_l2t_ns`: how long `len` bytes take, ns.
    #[inline]
    pub fn l2t_ns(&self, len: u32) -> u64 {
        let len = (len.wrapping_add(u32::from(self.overhead))).max(u32::from(self.mpu));
        let len = if u32::from(self.linklayer) == LINKLAYER_ATM {
            u64::from(len.div_ceil(ATM_CELL_PAYLOAD)) * u64::from(ATM_CELL_SIZE)
        } else {
            u64::from(len)
        };
        len.wrapping_mul(u64::from(self.mult)) >> self.shift
    }
}

/// `psched_ratecfg_precompute__`: `(mult, shift)` such that `bytes * mult >> shift` is ns.
fn precompute(rate: u64) -> (u32, u8) {
    let (mut factor, mut shift) = (1_000_000_000u64, 0u8);
    loop {
        let Some(mult) = factor.checked_div(rate).map(|mult| mult as u32) else { return (1, 0) };
        if mult & (1 << 31) != 0 || factor & (1 << 63) != 0 {
            return (mult, shift);
        }
        factor <<= 1;
        shift += 1;
    }
}

/// 2.6.35: a rate as a table of 256 transmission times that tc made (`struct qdisc_rate_table`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateTable {
    /// Bytes per second.
    pub rate_bytes: u32,
    /// Bytes added to each packet.
    pub overhead: u16,
    /// Least bytes a packet counts for; already in the table.
    pub mpu: u16,
    /// 1 Ethernet, [`LINKLAYER_ATM`]; already in the table.
    pub linklayer: u8,
    /// Bytes of one slot, as a power of two.
    pub cell_log: u8,
    /// What is added to a length before its slot is looked for (`cell_align`): -1, or 0 in 2.2 and 2.4.
    align: i64,
    data: Box<[u32; 256]>,
}

impl RateTable {
    /// The table tc makes for these parameters.
    pub fn new(rate_bytes: u32, overhead: u16, mpu: u16, linklayer: u8, cell_log: u8) -> RateTable {
        let slot = |i: usize| {
            let size = (i as u32 + 1).checked_shl(u32::from(cell_log)).unwrap_or(u32::MAX);
            xmittime(u64::from(rate_bytes), adjust_size(size, u32::from(mpu), u32::from(linklayer)))
        };
        let data = Box::new(std::array::from_fn(slot));
        RateTable { rate_bytes, overhead, mpu, linklayer, cell_log, align: -1, data }
    }
    /// The table of 2.2 and 2.4: the slot of a length is that of the cells it fills, a slot's time that of so many
    /// cells, in ticks that `ticks` makes of microseconds.
    pub fn from_cells(rate_bytes: u32, mpu: u16, cell_log: u8, ticks: impl Fn(u64) -> u32) -> RateTable {
        let slot = |i: usize| {
            let size = (i as u64).checked_shl(u32::from(cell_log)).unwrap_or(u64::MAX).max(u64::from(mpu));
            ticks(
                u64::try_from(u128::from(size) * 1_000_000 / u128::from(rate_bytes.max(1)))
                    .unwrap_or(u64::MAX >> 24),
            )
        };
        let data = Box::new(std::array::from_fn(slot));
        RateTable { rate_bytes, overhead: 0, mpu, linklayer: 0, cell_log, align: 0, data }
    }
    /// `qdisc_l2t`: how long `len` bytes take, ticks of 64 ns, or the kernel's own in 2.2 and 2.4. The cell alignment is
    /// -1, as tc sets it.
    #[inline]
    pub fn l2t(&self, len: u32) -> u32 {
        let slot = i64::from(len) + i64::from(self.overhead) + self.align;
        let slot = (slot.max(0) as u64) >> self.cell_log;
        match self.data.get(slot as usize) {
            Some(&ticks) => ticks,
            None => self.data[255]
                .wrapping_mul((slot >> 8) as u32)
                .wrapping_add(self.data[(slot & 0xff) as usize]),
        }
    }
    /// The longest packet that takes no more than `ticks`, bytes; -1 where none does (`tbf_change`).
    pub fn longest(&self, ticks: u32) -> i64 {
        let slots = self.data.iter().position(|&t| t > ticks).unwrap_or(self.data.len());
        ((slots as i64) << self.cell_log) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mult_and_shift_are_as_fine_as_32_bits_allow() {
        // 1 Mbit/s: 8000 ns a byte; 10 Gbit/s: 0.8 ns.
        let slow = RateCfg::new(125_000, 0, 0, 1);
        assert_eq!((slow.mult, slow.shift), (0xfa00_0000, 19));
        assert_eq!((slow.l2t_ns(1), slow.l2t_ns(1500)), (8_000, 12_000_000));
        let fast = RateCfg::new(1_250_000_000, 0, 0, 1);
        assert_eq!((fast.l2t_ns(1), fast.l2t_ns(1500)), (0, 1199));
        assert_eq!(RateCfg::new(0, 0, 0, 1).l2t_ns(1500), 1500);
    }

    #[test]
    fn atm_counts_whole_cells() {
        let atm = RateCfg::new(125_000, 10, 0, 2);
        assert_eq!(atm.l2t_ns(38), 53 * 8_000);
        assert_eq!(atm.l2t_ns(39), 106 * 8_000);
        assert_eq!(RateCfg::new(125_000, 0, 64, 1).l2t_ns(1), 64 * 8_000);
    }

    #[test]
    fn an_old_table_counts_full_cells() {
        let table = RateTable::from_cells(125_000, 0, 3, |us| us as u32);
        // 1400 bytes are 175 cells: 11.2 ms.
        assert_eq!((table.l2t(1400), table.l2t(1407), table.l2t(1408)), (11_200, 11_200, 11_264));
        assert_eq!((table.l2t(7), table.l2t(8)), (0, 64));
    }

    #[test]
    fn a_table_counts_cells_and_goes_on_past_its_end() {
        let table = RateTable::new(125_000, 0, 0, 1, 3);
        // 8 bytes a slot: 1500 falls in slot 187, 1504 bytes, 12.032 ms, 188,000 ticks.
        assert_eq!((table.l2t(1500), table.l2t(1504), table.l2t(1505)), (188_000, 188_000, 189_000));
        assert_eq!(table.l2t(0), table.l2t(1));
        // 2049 falls in slot 256: a whole table and slot 0.
        assert_eq!(table.l2t(2049), 256_000 + 1_000);
        assert_eq!((table.longest(188_000), table.longest(0), table.longest(u32::MAX)), (1503, -1, 2047));
    }
}
