//! The E-model: what a telephone call is worth, from its delay and its loss.
//!
//! Follows: ITU-T G.107 (06/2015) clause 7, every formula with the defaults of table 2; MOS of annex B; the planning values of G.113
//! (11/2007) appendix I for the codec.

/// What a call has met.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// Mouth to ear, ms (`Ta`, and `T` of the echo path; the round trip `Tr` is twice that).
    pub delay_ms: f64,
    /// Share of the packets that are not there when they are to be played, 0..=1 (`Ppl` / 100).
    pub loss: f64,
    /// Burstiness: mean length of a run of losses over that of random loss; 1 for random loss (`BurstR`).
    pub burst: f64,
    /// The codec.
    pub codec: Codec,
}

/// A codec as the E-model knows it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Codec {
    /// Equipment impairment factor without loss, `Ie`.
    pub ie: f64,
    /// Robustness against loss, `Bpl`.
    pub bpl: f64,
}

impl Codec {
    /// G.711 as it is, without a word on loss: the defaults of the E-model.
    pub const DEFAULT: Codec = Codec { ie: 0.0, bpl: 4.3 };
    /// G.711 that conceals lost packets (its appendix I), random loss (G.113 table I.3).
    pub const G711_PLC: Codec = Codec { ie: 0.0, bpl: 25.1 };
    /// G.729A with voice activity detection (G.113 tables I.1 and I.3).
    pub const G729A_VAD: Codec = Codec { ie: 11.0, bpl: 19.0 };
}

// Table 2 of G.107: send and receive loudness, sidetone, echo, noise.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
const OLR: f64 = SLR + RLR;
const STMR: f64 = 15.0;
const DS: f64 = 3.0;
const DR: f64 = 3.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
const QDU: f64 = 1.0;
const NC: f64 = -70.0;
const NFOR: f64 = -64.0;
const PS: f64 = 35.0;
const PR: f64 = 35.0;
/// Advantage factor: no access that users forgive anything for.
const A: f64 = 0.0;

fn db(x: f64) -> f64 {
    10f64.powf(x / 10.0)
}

/// The sum of noise powers, `No`, dBm0p.
fn noise() -> f64 {
    let nos = PS - SLR - DS - 100.0 + 0.004 * (PS - OLR - DS - 14.0).powi(2);
    let lstr = STMR + DR;
    let pre = PR + 10.0 * (1.0 + db(10.0 - lstr)).log10();
    let nor = RLR - 121.0 + pre + 0.008 * (pre - 35.0).powi(2);
    let nfo = NFOR + RLR;
    10.0 * (db(NC) + db(nos) + db(nor) + db(nfo)).log10()
}

/// Impairments that come at once with the voice, `Is`.
fn simultaneous(ro: f64, no: f64, t: f64) -> f64 {
    let xolr = OLR + 0.2 * (64.0 + no - RLR);
    let iolr = 20.0 * ((1.0 + (xolr / 8.0).powi(8)).powf(1.0 / 8.0) - xolr / 8.0);
    let stmro = -10.0 * (db(-STMR) + (-t / 4.0).exp() * db(-TELR)).log10();
    let ist = 12.0 * (1.0 + ((stmro - 13.0) / 6.0).powi(8)).powf(1.0 / 8.0)
        - 28.0 * (1.0 + ((stmro + 1.0) / 19.4).powi(35)).powf(1.0 / 35.0)
        - 13.0 * (1.0 + ((stmro - 3.0) / 33.0).powi(13)).powf(1.0 / 13.0)
        + 29.0;
    let q = 37.0 - 15.0 * QDU.log10();
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let iq = 15.0 * (1.0 + 10f64.powf(y) + 10f64.powf(z)).log10();
    iolr + ist + iq
}

/// Impairments by delay, `Id`: the talker's echo, the listener's echo, and the delay itself.
fn delayed(ro: f64, no: f64, ta: f64) -> f64 {
    let (t, tr) = (ta, 2.0 * ta);
    let terv = TELR - 40.0 * ((1.0 + t / 10.0) / (1.0 + t / 150.0)).log10() + 6.0 * (-0.3 * t * t).exp();
    let roe = -1.5 * (no - RLR);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let half = (roe - re) / 2.0;
    let idte = (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-t).exp());
    let rle = 10.5 * (WEPL + 7.0) * (tr + 1.0).powf(-0.25);
    let half = (ro - rle) / 2.0;
    let idle = half + (half * half + 169.0).sqrt();
    let idd = if ta <= 100.0 {
        0.0
    } else {
        let x = (ta / 100.0).log2();
        25.0 * ((1.0 + x.powi(6)).powf(1.0 / 6.0) - 3.0 * (1.0 + (x / 3.0).powi(6)).powf(1.0 / 6.0) + 2.0)
    };
    idte + idle + idd
}

/// Impairment by the codec and by loss, `Ie-eff`.
pub fn equipment(codec: Codec, loss: f64, burst: f64) -> f64 {
    let ppl = loss.clamp(0.0, 1.0) * 100.0;
    if ppl == 0.0 {
        return codec.ie;
    }
    codec.ie + (95.0 - codec.ie) * ppl / (ppl / burst.max(1.0) + codec.bpl)
}

/// The transmission rating factor `R` of a call: 93.2 for one that meets nothing.
pub fn rating(path: &Path) -> f64 {
    let ta = path.delay_ms.max(0.0);
    let no = noise();
    let ro = 15.0 - 1.5 * (SLR + no);
    ro - simultaneous(ro, no, ta) - delayed(ro, no, ta) - equipment(path.codec, path.loss, path.burst) + A
}

/// The mean opinion score, 1..=4.5, that a rating predicts (annex B).
pub fn mos(r: f64) -> f64 {
    match r {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        // Below 6.5 the polynomial dips under 1, the least that anyone can say.
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

/// What users say of such a call (G.109 table 1).
pub fn category(r: f64) -> &'static str {
    match r {
        r if r >= 90.0 => "best",
        r if r >= 80.0 => "high",
        r if r >= 70.0 => "medium",
        r if r >= 60.0 => "low",
        r if r >= 50.0 => "poor",
        _ => "not recommended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(delay_ms: f64, loss: f64) -> Path {
        Path { delay_ms, loss, burst: 1.0, codec: Codec::DEFAULT }
    }
    fn near(got: f64, want: f64, by: f64) {
        assert!((got - want).abs() <= by, "{got} instead of {want}");
    }

    /// G.107 clause 7.7: with all parameters at their defaults R is 93.2, which is a MOS of 4.41.
    #[test]
    fn a_call_that_meets_nothing_is_worth_93_2() {
        let r = rating(&path(0.0, 0.0));
        near(r, 93.2, 0.05);
        near(mos(r), 4.41, 0.005);
        let no = noise();
        near(no, -61.18, 0.01);
        near(15.0 - 1.5 * (SLR + no), 94.77, 0.01);
        near(simultaneous(94.77, no, 0.0), 1.41, 0.01);
    }

    /// G.107 table B.1, the lower limits of its categories. At 80 the table prints 4.03; the formula that it is made by gives 4.024.
    #[test]
    fn ratings_are_opinions() {
        for (r, score) in [(90.0, 4.34), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            near(mos(r), score, 0.006);
        }
        near(mos(80.0), 4.024, 1e-9);
        assert_eq!((mos(-3.0), mos(0.0), mos(3.0), mos(100.0), mos(120.0)), (1.0, 1.0, 1.0, 4.5, 4.5));
        assert_eq!(
            [93.2, 85.0, 70.0, 60.0, 59.9, 20.0].map(category),
            ["best", "high", "medium", "low", "poor", "not recommended"]
        );
    }

    /// The formula of Ie-eff by hand, and a value that is published: G.729A+VAD at 2 % of random loss loses 11 + 84 · 2 / 21 = 19 (G.113 appendix I).
    #[test]
    fn loss_impairs() {
        near(equipment(Codec::G729A_VAD, 0.02, 1.0), 19.0, 1e-9);
        near(equipment(Codec::G711_PLC, 0.01, 1.0), 95.0 / 26.1, 1e-9);
        near(equipment(Codec::DEFAULT, 0.01, 1.0), 95.0 / 5.3, 1e-9);
        // Losses in bursts twice as long as random ones.
        near(equipment(Codec::G711_PLC, 0.02, 2.0), 95.0 * 2.0 / (1.0 + 25.1), 1e-9);
        assert_eq!(equipment(Codec::G729A_VAD, 0.0, 1.0), 11.0);
    }

    /// Cole and Rosenbluth (2001) fit the model's delay impairment below 400 ms by 0.024 d, and 0.11 (d - 177.3) more where d > 177.3. The bend is the
    /// fit's: the model is smooth, and near 400 ms some 3 points kinder.
    #[test]
    fn delay_impairs_as_cole_and_rosenbluth_read_it_from_the_model() {
        for d in [50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0] {
            let fit = 0.024 * d + if d > 177.3 { 0.11 * (d - 177.3) } else { 0.0 };
            near(93.2 - rating(&path(d, 0.0)), fit, 2.0);
        }
    }

    #[test]
    fn more_delay_and_more_loss_are_never_better() {
        let mut last = f64::INFINITY;
        for d in 0..200 {
            let r = rating(&path(f64::from(d) * 5.0, 0.0));
            assert!(r <= last + 1e-9, "{d}: {r} after {last}");
            last = r;
        }
        assert!(rating(&path(50.0, 0.01)) < rating(&path(50.0, 0.0)));
    }
}
