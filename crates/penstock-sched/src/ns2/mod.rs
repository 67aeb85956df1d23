//! Queues of routers that are not Linux: what the simulator ns-2 puts before a link, under its own names, and FRED after its paper.
//!
//! They stand as the root of a device, set by the experiment file's `queue` and not by `tc`, which has no words for them.
//! Lengths are those of the IP packet, as everywhere in ns-2; the packet on the wire is not in the queue.

pub mod droptail;
mod flows;
pub mod fred;
mod held;
pub mod red;
pub mod red_pd;

use crate::sch::KindSpec;
use penstock_model::{KernelError, Options};

/// A kind, and the words that set it.
pub struct Queue {
    /// The kind.
    pub spec: &'static KindSpec,
    /// Its words.
    pub words: &'static [Word],
}

/// A word that sets something.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The word.
    pub name: &'static str,
    /// What is said with it.
    pub value: Kind,
}

/// What is said with a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number.
    Whole,
    /// A number.
    Real,
    /// A number of packets, or a share of the limit in percent.
    Share,
    /// A time, in seconds.
    Time,
    /// Yes or no.
    Flag,
}

/// A word.
const fn word(name: &'static str, value: Kind) -> Word {
    Word { name, value }
}

/// All kinds by name.
pub static KINDS: &[Queue] = &[
    Queue { spec: &fred::SPEC, words: fred::WORDS },
    Queue { spec: &droptail::SPEC, words: droptail::WORDS },
    Queue { spec: &red::SPEC, words: red::WORDS },
    Queue { spec: &red_pd::SPEC, words: red_pd::WORDS },
];

/// The kind called `id`.
pub fn find(id: &str) -> Option<&'static Queue> {
    KINDS.iter().find(|k| k.spec.id == id)
}

/// A number that may have a fraction: option tables carry it as text, as the experiment file has it.
pub(crate) fn real(o: &Options, name: &str, default: f64) -> Result<f64, KernelError> {
    match o.str(name) {
        None => Ok(o.u64(name).map_or(default, |n| n as f64)),
        Some(text) => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(KernelError::new(KernelError::EINVAL, format!("{name}: \"{text}\" is not a number"))),
        },
    }
}

/// A number of packets, bytes or the like.
pub(crate) fn whole(o: &Options, name: &str, default: u32) -> u32 {
    o.u32(name).unwrap_or(default)
}

/// Yes or no, as 1 or 0.
pub(crate) fn flag(o: &Options, name: &str, default: bool) -> bool {
    o.u32(name).map_or(default, |n| n != 0)
}

/// A refusal with its sentence.
pub(crate) fn refuse(sentence: impl Into<String>) -> KernelError {
    KernelError::new(KernelError::EINVAL, sentence.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_order() {
        assert!(KINDS.windows(2).all(|w| w[0].spec.id < w[1].spec.id));
        assert!(KINDS.iter().all(|k| crate::sch::KINDS.iter().all(|linux| linux.id != k.spec.id)));
        assert_eq!(find("ns2_red").map(|k| k.spec.id), Some("ns2_red"));
    }

    #[test]
    fn numbers_are_read_exactly_or_refused() {
        let o = Options::new().with("q_weight", "0.002").with("thresh", 18u32).with("bad", "inf");
        assert_eq!(real(&o, "q_weight", 1.0), Ok(0.002));
        assert_eq!((real(&o, "thresh", 1.0), real(&o, "top", 0.5)), (Ok(18.0), Ok(0.5)));
        assert!(real(&o, "bad", 0.0).is_err());
    }
}
