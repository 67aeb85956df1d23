//! The judge of the claims CT1 to CT57: CBQ and TBF on a Linux 2.2 router, and what its clock does to them.
//!
//! Source: Eduardo Magaña, Edurne Izkue, Jesús Villadangos, "Análisis de Prestaciones de un Planificador de Tráfico sobre
//! Plataformas de Propósito General", SIGCOMM Latin America and Caribbean, San José, 2001. Rates are those of payload.

mod clock;
mod flows;
mod gaps;
mod pictures;

use super::evidence::{Evidence, Missing};
use super::{Judgement, Judgement as J};

pub use pictures::figures;

type Verdict = Result<Judgement, Missing>;

/// Judges one claim.
pub fn judge(id: &str, e: &Evidence) -> Judgement {
    let number: u32 = id.strip_prefix("CT").and_then(|n| n.parse().ok()).unwrap_or(0);
    let verdict = match number {
        1..=11 | 53 | 55 => flows::judge(number, e),
        12..=17 => gaps::judge(number, e),
        18..=28 | 54 => flows::judge_tcp(number, e),
        29..=52 | 56 | 57 => clock::judge(number, e),
        _ => Err(format!("no judge for {id}")),
    };
    verdict.unwrap_or_else(J::open)
}

/// Mean goodput of a flow between two moments of a run, Mbit/s.
fn mbit(e: &Evidence, run: &str, flow: &str, from: f64, to: f64) -> Result<f64, Missing> {
    Ok(e.flow(run, flow)?.goodput_between(from, to) / 1e6)
}

/// Judgement of several claims together.
fn together(parts: &[Verdict], published: &str) -> Verdict {
    let mut held = 0;
    for part in parts {
        held += usize::from(part.as_ref().map_err(Clone::clone)?.holds());
    }
    Ok(J::of(held == parts.len(), published, format!("{held} of {} hold", parts.len()), ""))
}
