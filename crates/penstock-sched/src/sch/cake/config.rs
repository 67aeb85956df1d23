//! What the options say, as the packets need it, and the tables of diffserv.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c` `cake_change`, `cake_config_besteffort` to `cake_config_diffserv3`; RFC 4594, 8622.

use super::tin::mode;
use penstock_model::{KernelError, Options, Value};

/// `CAKE_DIFFSERV_*`; 0 is diffserv3, and so is what is none of these.
const DIFFSERV4: u32 = 1;
const DIFFSERV8: u32 = 2;
const BESTEFFORT: u32 = 3;
const PRECEDENCE: u32 = 4;
/// `CAKE_FLOW_MASK`.
const FLOW_MASK: u32 = 63;
/// `CAKE_FLOW_TRIPLE`.
const TRIPLE: u32 = 7;

/// Numbers a change sets as they come, and their defaults. `raw` stands for the flag that an overhead was given.
const NUMBERS: [(&str, u32); 9] = [
    ("diffserv", 0),
    ("flowmode", TRIPLE),
    ("atm", 0),
    ("mpu", 0),
    ("rtt", 100_000),
    ("target", 5000),
    ("ack_filter", 0),
    ("memlimit", 0),
    ("fwmark", 0),
];
/// Numbers of which only zero or not counts, and their defaults.
const FLAGS: [(&str, u32); 5] = [("nat", 0), ("wash", 0), ("autorate", 0), ("ingress", 0), ("split_gso", 1)];

/// Which tin a code point belongs to.
type ByDscp = [u8; 64];

/// Tins of the code points of `list`; all others belong to `rest`.
const fn by_dscp(rest: u8, list: &[(u8, u8)]) -> ByDscp {
    let mut table = [rest; 64];
    let mut n = 0;
    while n < list.len() {
        table[list[n].0 as usize] = list[n].1;
        n += 1;
    }
    table
}

const fn by_precedence() -> ByDscp {
    let mut table = [0; 64];
    let mut dscp = 0;
    while dscp < 64 {
        table[dscp] = dscp as u8 >> 3;
        dscp += 1;
    }
    table
}

/// Code points by name.
mod dscp {
    pub const LE: u8 = 1;
    /// RFC 1349's "maximise throughput" and "minimise delay", and what once stood for both of low loss and latency.
    pub const TOS2: u8 = 2;
    pub const TOS4: u8 = 4;
    pub const TOS5: u8 = 5;
    pub const VA: u8 = 44;
    pub const EF: u8 = 46;
    /// Class selector `n`.
    pub const fn cs(n: u8) -> u8 {
        8 * n
    }
    /// Assured forwarding `class`, `precedence`.
    pub const fn af(class: u8, precedence: u8) -> u8 {
        8 * class + 2 * precedence
    }
}
use dscp::{EF, LE, TOS2, TOS4, TOS5, VA, af, cs};

static ONE: ByDscp = [0; 64];
static BY_PRECEDENCE: ByDscp = by_precedence();
/// Background, high throughput, best effort, video, low latency, shell, least latency, control.
static EIGHT: ByDscp = by_dscp(
    2,
    &[
        (LE, 0),
        (cs(0), 2),
        (TOS2, 1),
        (TOS4, 4),
        (TOS5, 2),
        (cs(1), 1),
        (af(1, 1), 1),
        (af(1, 2), 1),
        (af(1, 3), 1),
        (cs(2), 5),
        (af(2, 1), 4),
        (af(2, 2), 4),
        (af(2, 3), 4),
        (cs(3), 3),
        (af(3, 1), 3),
        (af(3, 2), 3),
        (af(3, 3), 3),
        (cs(4), 6),
        (af(4, 1), 3),
        (af(4, 2), 3),
        (af(4, 3), 3),
        (cs(5), 6),
        (VA, 6),
        (EF, 6),
        (cs(6), 7),
        (cs(7), 7),
    ],
);
/// Best effort, background, video, voice.
static FOUR: ByDscp = by_dscp(
    0,
    &[
        (LE, 1),
        (TOS4, 2),
        (cs(1), 1),
        (cs(2), 2),
        (af(2, 1), 2),
        (af(2, 2), 2),
        (af(2, 3), 2),
        (cs(3), 2),
        (af(3, 1), 2),
        (af(3, 2), 2),
        (af(3, 3), 2),
        (cs(4), 3),
        (af(4, 1), 2),
        (af(4, 2), 2),
        (af(4, 3), 2),
        (cs(5), 3),
        (VA, 3),
        (EF, 3),
        (cs(6), 3),
        (cs(7), 3),
    ],
);
/// Best effort, background, voice.
static THREE: ByDscp =
    by_dscp(0, &[(LE, 1), (TOS4, 2), (cs(1), 1), (VA, 2), (EF, 2), (cs(6), 2), (cs(7), 2)]);

/// The tins in the order they are shown: the least first.
static IN_ORDER: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
static BULK_FIRST: [u8; 8] = [1, 0, 2, 3, 4, 5, 6, 7];

/// The tins of a mode: which code points belong to which, in what order they are shown, and of each its share of the rate and its weight.
pub(super) struct Tins {
    pub by_dscp: &'static ByDscp,
    pub order: &'static [u8; 8],
    pub shares: Vec<(u64, u16)>,
}

/// What packets are counted in: `CAKE_ATM_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Cells {
    #[default]
    None,
    /// 48 bytes in 53.
    Atm,
    /// A byte more for each 64 or part of them.
    Ptm,
}

/// The options.
pub struct Config {
    /// As they are dumped.
    pub params: Options,
    /// With [`mode::NAT`].
    pub flow_mode: u32,
    /// Every packet goes to the first tin.
    pub besteffort: bool,
    pub(super) cells: Cells,
    /// Bytes added to a packet (`rate_overhead`).
    pub overhead: i16,
    /// An overhead was given: packets count without their link header (`CAKE_FLAG_OVERHEAD`).
    pub without_header: bool,
    pub mpu: u16,
    pub wash: bool,
    pub ingress: bool,
    /// Super-packets go in as their segments.
    pub split_gso: bool,
    pub autorate: bool,
    /// 1: it is on; 2: aggressive.
    pub ack_filter: u32,
    pub(super) fwmark: (u32, u32),
}

impl Config {
    /// The defaults.
    pub fn new() -> Config {
        let mut params =
            Options::new().with("bandwidth", 0u64).with("overhead", 0i64).with("raw", Value::Flag);
        for (name, default) in NUMBERS.into_iter().chain(FLAGS) {
            params = params.with(name, default);
        }
        let mut config = Config {
            params,
            flow_mode: 0,
            besteffort: false,
            cells: Cells::None,
            overhead: 0,
            without_header: false,
            mpu: 0,
            wash: false,
            ingress: false,
            split_gso: true,
            autorate: false,
            ack_filter: 0,
            fwmark: (0, 0),
        };
        config.read();
        config
    }
    /// Bytes a second; 0: no limit.
    pub(super) fn rate(&self) -> u64 {
        self.params.u64("bandwidth").unwrap_or(0)
    }
    /// Another rate, which cake has found itself.
    pub(super) fn set_rate(&mut self, rate: u64) {
        self.params.set("bandwidth", Value::U64(rate));
    }
    fn number(&self, name: &str) -> u32 {
        self.params.u32(name).unwrap_or(0)
    }
    /// Round trip and target, us.
    pub(super) fn times_us(&self) -> (u64, u64) {
        (self.number("rtt").into(), self.number("target").into())
    }
    /// Bytes of memory that were given; 0: none were.
    pub(super) fn memlimit(&self) -> u32 {
        self.number("memlimit")
    }
    /// Sets what is given. Whether the sizes seen count no longer, since an overhead or `raw` is among it.
    pub fn change(&mut self, o: &Options) -> Result<bool, KernelError> {
        if let Some(rate) = o.u64("bandwidth") {
            self.set_rate(rate);
        }
        for (name, _) in NUMBERS {
            if let Some(value) = o.u32(name) {
                let value = match name {
                    "flowmode" => value & FLOW_MASK,
                    "rtt" | "target" => value.max(1),
                    _ => value,
                };
                self.params.set(name, Value::U32(value));
            }
        }
        for (name, _) in FLAGS {
            if let Some(value) = o.u32(name) {
                self.params.set(name, Value::U32(u32::from(value != 0)));
            }
        }
        if let Some(overhead) = o.i64("overhead") {
            self.params.set("overhead", Value::I64(overhead));
            self.params.remove("raw");
        }
        if o.has("raw") {
            self.params.set("raw", Value::Flag);
        }
        self.read();
        Ok(o.has("overhead") || o.has("raw"))
    }
    /// The fields that packets ask for.
    fn read(&mut self) {
        let on = |name: &str| self.number(name) != 0;
        let nat = if on("nat") { mode::NAT } else { 0 };
        let mask = self.number("fwmark");
        let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
        (self.flow_mode, self.besteffort) =
            (self.number("flowmode") | nat, self.number("diffserv") == BESTEFFORT);
        self.cells = match self.number("atm") {
            1 => Cells::Atm,
            2 => Cells::Ptm,
            _ => Cells::None,
        };
        self.overhead = self.params.i64("overhead").unwrap_or(0) as i16;
        self.without_header = !self.params.has("raw");
        self.mpu = self.number("mpu") as u16;
        let on = |name: &str| self.number(name) != 0;
        (self.wash, self.ingress, self.autorate, self.split_gso) =
            (on("wash"), on("ingress"), on("autorate"), on("split_gso"));
        self.ack_filter = self.number("ack_filter");
        self.fwmark = (mask, shift);
    }
    /// What the mark says of the tin; 0: nothing.
    pub(super) fn tin_by_mark(&self, mark: u32) -> u32 {
        (mark & self.fwmark.0) >> self.fwmark.1
    }
    /// `cake_config_besteffort`, `…_precedence`, `…_diffserv8`, `…_diffserv4`, `…_diffserv3`.
    pub(super) fn tins(&self) -> Tins {
        self.tins_at(self.rate())
    }
    /// The same with another rate.
    pub(super) fn tins_at(&self, rate: u64) -> Tins {
        // Seven eighths of the tin before.
        let falling = |&(rate, quantum): &(u64, u16)| {
            Some((rate.wrapping_mul(7) >> 3, ((u32::from(quantum) * 7) >> 3) as u16))
        };
        let eight = || std::iter::successors(Some((rate, 256)), falling).take(8).collect();
        let part = |shift: u32| (rate >> shift, 1024 >> shift);
        let (by_dscp, order, shares) = match self.number("diffserv") {
            BESTEFFORT => (&ONE, &IN_ORDER, vec![(rate, 65535)]),
            PRECEDENCE => (&BY_PRECEDENCE, &IN_ORDER, eight()),
            DIFFSERV8 => (&EIGHT, &IN_ORDER, eight()),
            DIFFSERV4 => (&FOUR, &BULK_FIRST, [0, 4, 1, 2].map(part).to_vec()),
            _ => (&THREE, &BULK_FIRST, [0, 4, 2].map(part).to_vec()),
        };
        Tins { by_dscp, order, shares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_their_tins() {
        let rows = |table: &ByDscp| -> Vec<String> {
            table.chunks(8).map(|row| row.iter().map(u8::to_string).collect()).collect()
        };
        let eight =
            ["20124222", "12121212", "52424242", "32323232", "62323232", "62226262", "72222222", "72222222"];
        assert_eq!(rows(&EIGHT), eight);
        let four =
            ["01002000", "10000000", "20202020", "20202020", "30202020", "30003030", "30000000", "30000000"];
        assert_eq!(rows(&FOUR), four);
        let three =
            ["01002000", "10000000", "00000000", "00000000", "00000000", "00002020", "20000000", "20000000"];
        assert_eq!(rows(&THREE), three);
        assert_eq!(BY_PRECEDENCE[47], 5);
    }
}
