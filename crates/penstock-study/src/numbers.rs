//! The numbers that a study printed, and where in the runs each is found.

use super::evidence::{self, Evidence};
use serde::Deserialize;

/// A number as `published.toml` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub(super) experiment: String,
    pub(super) quantity: String,
    #[serde(default)]
    pub(super) host: String,
    #[serde(default)]
    pub(super) run: String,
    #[serde(default)]
    pub(super) flow: String,
    /// What a packet of the flow counts as, bytes, where it is not its frame without FCS.
    pub(super) frame: Option<u32>,
    #[serde(default)]
    pub(super) nth: usize,
    pub(super) measure: Measure,
    pub(super) unit: String,
    pub(super) value: f64,
    /// The table whose median difference it is counted in.
    #[serde(default)]
    pub(super) table: String,
    /// Why it is not counted.
    pub(super) excluded: Option<String>,
}

/// Which result of a program a published number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// Throughput by its own count, Mbit/s.
    Throughput,
    /// Mean round trip of a program or of an echo probe, ms.
    MeanRtt,
    /// Rate in scp's progress line, MB/s of 1024 × 1024 bytes.
    ScpRate,
    /// Mean of an iperf report's rows between the first and the last, Mbit/s.
    InnerRows,
    /// Rate of a flow's arriving frames (Ethernet header, no FCS), kbit/s.
    FrameRate,
    /// What `ftp` prints of a flow of TCP, in kbyte of 1024 bytes a second, times eight, kbit/s.
    ProgramRate,
}

impl Published {
    /// What the runs showed.
    pub(super) fn measured(&self, evidence: &Evidence) -> Option<f64> {
        if self.measure == Measure::FrameRate {
            let flow = evidence.flow(&self.experiment, &self.flow).ok()?;
            return Some(
                self.frame.map_or_else(|| flow.frame_rate(), |bytes| flow.counted_rate(bytes)) / 1e3,
            );
        }
        if self.measure == Measure::ProgramRate {
            return evidence.flow(&self.experiment, &self.flow).ok().map(|f| f.program_rate() / 1e3);
        }
        if self.measure == Measure::MeanRtt && !self.flow.is_empty() {
            let flow = evidence.flow(&self.experiment, &self.flow).ok().filter(|f| !f.rtts.is_empty())?;
            return Some(evidence::mean(flow.rtts.iter().map(|r| r.1)));
        }
        let app = evidence.app(&self.experiment, &self.host, &self.run, self.nth).ok()?;
        match self.measure {
            Measure::Throughput => app.throughput_bit_s.map(|b| b / 1e6),
            Measure::MeanRtt => app.rtt_mean_ms,
            Measure::ScpRate => {
                app.text.split_whitespace().find_map(|w| w.strip_suffix("MB/s")?.parse().ok())
            }
            Measure::InnerRows => {
                let rows = app.intervals.get(1..app.intervals.len().saturating_sub(1))?;
                (!rows.is_empty()).then(|| evidence::mean(rows.iter().map(|r| r.2)) / 1e6)
            }
            Measure::FrameRate | Measure::ProgramRate => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Numbers {
    pub(super) number: Vec<Published>,
}
