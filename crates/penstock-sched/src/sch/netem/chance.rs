//! The dice of `netem`: a generator of its own, correlation, the models of loss, and delays by a distribution.
//!
//! Follows: linux v6.12 `net/sched/sch_netem.c` `get_crandom`, `loss_4state`, `loss_gilb_ell`, `tabledist`; `lib/random32.c`
//! `prandom_u32_state`, `include/linux/prandom.h` `prandom_seed_state`; v2.6.35 the same functions, with `net_random` for dice.
//! Differs: where no `seed` is given the kernel draws one at the making, here the first throw does.

use super::dist::{SCALE, Table};
use penstock_model::{Kernel, Options, Rng};

/// `struct rnd_state`: four shift registers, the sum of which is the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prng([u32; 4]);

impl Prng {
    /// `prandom_seed_state`.
    pub(super) fn seeded(seed: u64) -> Prng {
        let word = ((seed >> 32) ^ (seed << 10) ^ seed) as u32;
        Prng([2, 8, 16, 128].map(|least| if word < least { word + least } else { word }))
    }
    /// `prandom_u32_state`.
    pub(super) fn next(&mut self) -> u32 {
        // By how much each register is shifted twice, which bits of it stay, and how far these move.
        const STEPS: [(u32, u32, u32, u32); 4] =
            [(6, 13, !1, 18), (2, 27, !7, 2), (13, 21, !15, 7), (3, 12, !127, 13)];
        for (s, (a, b, kept, by)) in self.0.iter_mut().zip(STEPS) {
            *s = ((*s & kept) << by) ^ (((*s << a) ^ *s) >> b);
        }
        self.0.iter().fold(0, |sum, s| sum ^ s)
    }
}

/// What throws.
#[derive(Clone, Debug)]
pub(super) struct Dice {
    kernel: Kernel,
    prng: Option<Prng>,
}

impl Dice {
    pub(super) fn new(kernel: Kernel) -> Dice {
        Dice { kernel, prng: None }
    }
    /// `seed` was given.
    pub(super) fn seed(&mut self, seed: u64) {
        self.prng = Some(Prng::seeded(seed));
    }
    /// 32 bits.
    pub(super) fn throw(&mut self, rng: &mut Rng) -> u32 {
        match self.kernel {
            Kernel::V2_6_35 => rng.next_u32(),
            Kernel::V6_12 | Kernel::V7_2 => {
                self.prng.get_or_insert_with(|| Prng::seeded(rng.next_u64())).next()
            }
        }
    }
}

/// `struct crndstate`: a throw that hangs on the one before.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Correlated {
    rho: u32,
    /// `None`: as the machine's own dice fall (`init_crandom`).
    last: Option<u32>,
}

impl Correlated {
    pub(super) fn new(rho: u32) -> Correlated {
        Correlated { rho, last: None }
    }
    /// `get_crandom`.
    pub(super) fn throw(&mut self, dice: &mut Dice, rng: &mut Rng) -> u32 {
        if self.rho == 0 {
            return dice.throw(rng);
        }
        let last = u64::from(*self.last.get_or_insert_with(|| rng.next_u32()));
        let value = u64::from(dice.throw(rng));
        let rho = u64::from(self.rho) + 1;
        let answer = value.wrapping_mul((1 << 32) - rho).wrapping_add(last * rho) >> 32;
        self.last = Some(answer as u32);
        answer as u32
    }
}

/// Where the four-state model is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Packets pass, between bursts of losses.
    TxInGap,
    /// Packets pass, within one.
    TxInBurst,
    /// One is lost between them.
    LostInGap,
    /// Packets are lost, in one.
    LostInBurst,
}

/// How packets are lost.
#[derive(Clone, Debug)]
pub(super) enum Loss {
    /// Each by itself, or correlated.
    Random { loss: u32 },
    /// `loss state`.
    States { state: State4 },
    /// `loss gemodel`.
    GilbertElliott { bad: bool, p: u32, r: u32, h: u32, k1: u32 },
}

/// The four states with the chances of going from one to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct State4 {
    state: State,
    p13: u32,
    p31: u32,
    p32: u32,
    p14: u32,
    p23: u32,
}

impl Loss {
    /// As the options say it; a model begins anew with each change that names it.
    pub(super) fn parse(o: &Options) -> Loss {
        let chain = |name: &str| {
            let o = o.nested(name)?.clone();
            Some(move |name: &str| o.u32(name).unwrap_or(0))
        };
        if let Some(n) = chain("loss_state") {
            let [p13, p31, p32, p14, p23] = ["p13", "p31", "p32", "p14", "p23"].map(n);
            return Loss::States { state: State4 { state: State::TxInGap, p13, p31, p32, p14, p23 } };
        }
        if let Some(n) = chain("loss_gemodel") {
            let [p, r, h, k1] = ["p", "r", "h", "k1"].map(n);
            return Loss::GilbertElliott { bad: false, p, r, h, k1 };
        }
        Loss::Random { loss: o.u32("loss").unwrap_or(0) }
    }
    /// `loss_event`: whether this packet is lost.
    pub(super) fn strikes(&mut self, correlated: &mut Correlated, dice: &mut Dice, rng: &mut Rng) -> bool {
        match self {
            Loss::Random { loss } => *loss != 0 && *loss >= correlated.throw(dice, rng),
            Loss::States { state } => state.strikes(dice.throw(rng)),
            Loss::GilbertElliott { bad, p, r, h, k1 } => {
                if !*bad {
                    *bad = dice.throw(rng) < *p;
                    dice.throw(rng) < *k1
                } else {
                    *bad = dice.throw(rng) >= *r;
                    dice.throw(rng) > *h
                }
            }
        }
    }
}

impl State4 {
    /// `loss_4state`.
    fn strikes(&mut self, thrown: u32) -> bool {
        let (next, lost) = match self.state {
            State::TxInGap if thrown < self.p14 => (State::LostInGap, true),
            State::TxInGap if thrown < self.p13.wrapping_add(self.p14) => (State::LostInBurst, true),
            State::TxInBurst if thrown < self.p23 => (State::LostInBurst, true),
            State::TxInBurst => (State::TxInBurst, false),
            State::LostInBurst if thrown < self.p32 => (State::TxInBurst, false),
            State::LostInBurst if thrown < self.p31.wrapping_add(self.p32) => (State::TxInGap, false),
            State::LostInBurst => (State::LostInBurst, true),
            State::TxInGap | State::LostInGap => (State::TxInGap, false),
        };
        self.state = next;
        lost
    }
}

/// `tabledist`: `mu` and, where `thrown` is that much, at most `sigma` more or less, or so many times `sigma` as the table says.
pub(super) fn spread(mu: i64, sigma: i32, thrown: u32, table: Option<&Table>) -> i64 {
    let Some(table) = table else {
        return i64::from(thrown % (2 * sigma as u32)) + mu - i64::from(sigma);
    };
    let (t, sigma) = (i64::from(table[thrown as usize % table.len()]), i64::from(sigma));
    let x = sigma % SCALE * t;
    let x = if x >= 0 { x + SCALE / 2 } else { x - SCALE / 2 };
    x / SCALE + sigma / SCALE * t + mu
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_kernel_s() {
        // Worked out by hand from the definition of the registers for seeds that their least values move, and for one of 64 bits.
        let thrown = |seed: u64| {
            let mut prng = Prng::seeded(seed);
            std::array::from_fn::<u32, 3, _>(|_| prng.next())
        };
        assert_eq!(thrown(1), [0x1082_100e, 0x0120_8a00, 0x8900_402e]);
        assert_eq!(thrown(0x1234_5678_9abc_def0), [0x5d57_1d3e, 0xc1eb_8693, 0xca28_7a05]);
    }

    #[test]
    fn delays_spread_about_their_mean() {
        assert_eq!([0, 999, 1000, 1999].map(|t| spread(5000, 1000, t, None)), [4000, 4999, 5000, 5999]);
        let mut table = [0i16; 4096];
        (table[0], table[1]) = (8192, -4096);
        let at = |thrown| spread(100_000, 10_001, thrown, Some(&table));
        assert_eq!([at(0), at(1), at(2), at(4096)], [110_001, 94_999, 100_000, 110_001]);
    }

    #[test]
    fn a_correlation_of_all_repeats_itself() {
        let (mut dice, mut rng) = (Dice::new(Kernel::V6_12), Rng::named(1, "netem"));
        dice.seed(7);
        let mut all = Correlated { rho: u32::MAX, last: Some(77) };
        assert_eq!([0; 3].map(|_| all.throw(&mut dice, &mut rng)), [77; 3]);
    }

    #[test]
    fn models_of_loss_go_from_state_to_state() {
        let mut four = State4 { state: State::TxInGap, p13: 100, p31: 50, p32: 50, p14: 10, p23: 200 };
        let lost: Vec<bool> = [5, 0, 50, 500, 40, 300, 100, 70, 900].map(|t| four.strikes(t)).to_vec();
        // Lost alone, back; lost in a burst, lost again; passes within it twice, lost again; the burst is over.
        assert_eq!(lost, [true, false, true, true, false, false, true, false, false]);
    }
}
