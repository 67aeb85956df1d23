//! The judge of the claims CR1 to CR21: FIFO against CBQ on a Linux router.
//!
//! Source: Falko Dressler, Ursula Hilgers, "Routing mit QoS-Eigenschaften unter Linux", Universität Erlangen-Nürnberg, about 2000.
//! Rates are those of the frames that arrived, in the bytes that the generator's notation gives each of them; those of TCP what `ftp`
//! prints, kbyte of 1024 bytes a second, times eight: each of the document's is a whole number of hundredths of these.

use super::evidence::{Evidence, Missing};
use super::figures::{Figure, chart, curve};
use super::{Judgement, Judgement as J};
use penstock_measure::number::Unit;
use penstock_measure::plot::Stroke;

type Verdict = Result<Judgement, Missing>;

/// What best effort is offered in the five rows, MBit/s, as the file names have it, and exactly.
const ROWS: [(&str, f64); 5] = [("08", 8.0), ("10", 10.0), ("12", 12.0), ("20", 20.01), ("50", 49.97)];

/// Judges one claim.
pub fn judge(id: &str, e: &Evidence) -> Judgement {
    let verdict = match id {
        "CR1" => cr1(e),
        "CR2" => cr2(e),
        "CR3" => cr3(e),
        "CR4" => cr4(e),
        "CR5" => cr5(e),
        "CR6" => cr6(e),
        "CR7" => cr7(e),
        "CR8" => cr8(e),
        "CR9" => cr9(e),
        "CR10" => cr10(e),
        "CR11" => cr11(e),
        "CR12" => cr12(e),
        "CR13" => cr13(e),
        "CR14" => cr14(e),
        "CR15" => cr15(e),
        "CR16" => cr16(e),
        "CR17" => cr17(e),
        "CR18" => cr18(e),
        "CR19" => cr19(e),
        "CR20" => cr20(e),
        "CR21" => cr21(e),
        _ => Err(format!("no judge for {id}")),
    };
    verdict.unwrap_or_else(J::open)
}

/// A flow's rate, kbit/s, as the document counts it: the generator's frames; of TCP what its program prints.
fn rate(e: &Evidence, run: &str, flow: &str) -> Result<f64, Missing> {
    let mixed = e.flow(run, "Flow4").is_err();
    let found = e.flow(run, flow)?;
    let bits = match (flow, mixed) {
        ("Flow1", _) | ("Flow2", false) => found.counted_rate(240),
        ("Flow2", true) => found.program_rate(),
        ("Flow3", false) => found.counted_rate(900),
        _ => found.counted_rate(429),
    };
    Ok(bits / 1e3)
}

/// A column of a table: the flow's rate in each row, kbit/s.
fn column(e: &Evidence, table: u32, flow: &str) -> Result<Vec<f64>, Missing> {
    let section = if table < 3 { "4.3" } else { "4.4" };
    let cell = |row: &str| rate(e, &format!("{section}-table-{table}-{row}"), flow);
    ROWS.iter().map(|(row, _)| cell(row)).collect()
}

/// The play of the document's measurement, as a share: it prints 64.32 kbit/s of 63.36 sent.
const PLAY: f64 = 0.015;

fn falls(values: &[f64]) -> bool {
    values.windows(2).all(|w| w[1] < w[0])
}
fn rises(values: &[f64]) -> bool {
    values.windows(2).all(|w| w[1] > w[0])
}
fn show(values: &[f64]) -> String {
    let cells: Vec<String> = values.iter().map(|v| format!("{v:.1}")).collect();
    format!("{} kbit/s", cells.join(", "))
}
fn spread(values: &[f64]) -> f64 {
    let (low, high) = values.iter().fold((f64::MAX, 0.0f64), |(l, h), &v| (l.min(v), h.max(v)));
    (high - low) / high
}

fn cr1(e: &Evidence) -> Verdict {
    let (mut dropped, mut carried, mut lost, mut at_linux, mut runs) = (0, 0, 0, 0, 0);
    for (_, run) in e.runs.iter().filter(|(name, _)| name.contains("-table-")) {
        runs += 1;
        let of = |hosts: &[&str]| {
            run.drops
                .iter()
                .filter(|(place, _)| hosts.contains(&place.0.as_str()))
                .map(|(_, n)| n)
                .sum::<u64>()
        };
        dropped += of(&["router1", "router2"]);
        at_linux += of(&["linux"]);
        carried += run.flows.iter().map(|f| f.packets.0).sum::<u64>();
        lost += run.flows.iter().map(|f| f.packets.2).sum::<u64>();
    }
    let measured = format!(
        "{dropped} of {carried} packets in {runs} runs; the flows lost {lost}, the Linux router dropped {at_linux}"
    );
    let note = "both ways of counting: the converters' own drops, and that the Linux router accounts for every packet lost";
    Ok(J::of(
        dropped == 0 && lost > 0 && lost <= at_linux && runs == 20,
        "0 at input and output",
        measured,
        note,
    ))
}

/// Packets of two classes of a run on the router's eth1, and what the flows have sent.
fn classes(e: &Evidence, run: &str) -> Result<(u64, u64), Missing> {
    Ok((e.class(run, "linux", "eth1", "1:2")?[0], e.class(run, "linux", "eth1", "1:3")?[0]))
}
/// Datagrams that arrived of all flows whose name begins so.
fn arrived(e: &Evidence, run: &str, name: &str) -> Result<u64, Missing> {
    Ok(e.run(run)?.flows.iter().filter(|f| f.name.starts_with(name)).map(|f| f.packets.1).sum())
}
/// Whether two counts are the same but for what is under way at the end.
fn same(a: u64, b: u64) -> bool {
    b > 50 && a.abs_diff(b) <= 8
}

fn cr2(e: &Evidence) -> Verdict {
    const RUN: &str = "4.2-ipchains";
    let (two, three) = classes(e, RUN)?;
    let (to1, to2) = (arrived(e, RUN, "to 1")?, arrived(e, RUN, "to 2")?);
    let measured =
        format!("class 1:2 {two} packets of {to1} to 192.129.1.0/24, 1:3 {three} of {to2} to 192.129.2.0/24");
    Ok(J::of(same(two, to1) && same(three, to2), "labels 2 and 3", measured, "by the printed lines"))
}

fn cr3(e: &Evidence) -> Verdict {
    const RUN: &str = "4.2-u32-tos";
    let (two, three) = classes(e, RUN)?;
    let of = |tos: [u32; 2]| -> Result<u64, Missing> {
        tos.iter().map(|t| Ok(e.flow(RUN, &format!("tos {t}"))?.packets.1)).sum()
    };
    let (zero, twenty) = (of([0, 3])?, of([0x20, 0x23])?);
    let others = of([0x24, 0x10])? + of([0x40, 0x40])? / 2;
    let measured = format!(
        "1:2 {two} packets (ToS 0, 3: {zero}), 1:3 {three} (0x20, 0x23: {twenty}), {others} others in neither"
    );
    Ok(J::of(
        same(two, zero) && same(three, twenty) && others > 100,
        "0x00 and 0x20 under 0xfc",
        measured,
        "",
    ))
}

fn cr4(e: &Evidence) -> Verdict {
    let columns: Vec<Vec<f64>> =
        ["Flow1", "Flow2", "Flow3"].iter().map(|f| column(e, 1, f)).collect::<Result<_, _>>()?;
    let measured = format!("Flow1 {}; Flow3 {}", show(&columns[0]), show(&columns[2]));
    Ok(J::of(columns.iter().all(|c| falls(c)), "63.22 down to 16.69, 991.36 to 197.32", measured, ""))
}

fn cr5(e: &Evidence) -> Verdict {
    let column = column(e, 1, "Flow4")?;
    Ok(J::of(
        rises(&column) && (column[4] / 9194.71 - 1.0).abs() <= PLAY,
        "7976 up to 9195 kbit/s",
        show(&column),
        "the last within 1.5 %, the play of the document's own cells",
    ))
}

/// Loss of the flows that the classes protect, over all rows; the greatest.
fn protected(e: &Evidence, table: u32, flows: &[&str]) -> Result<f64, Missing> {
    let section = if table < 3 { "4.3" } else { "4.4" };
    let mut worst: f64 = 0.0;
    for (row, _) in ROWS {
        for flow in flows {
            worst = worst.max(e.flow(&format!("{section}-table-{table}-{row}"), flow)?.loss());
        }
    }
    Ok(worst)
}

fn cr6(e: &Evidence) -> Verdict {
    let worst = protected(e, 2, &["Flow1", "Flow2", "Flow3"])?;
    Ok(J::of(worst == 0.0, "no loss", format!("at most {:.2} % lost", worst * 100.0), ""))
}

fn cr7(e: &Evidence) -> Verdict {
    let spreads: Vec<f64> = ["Flow1", "Flow2", "Flow3"]
        .iter()
        .map(|f| Ok(spread(&column(e, 2, f)?)))
        .collect::<Result<_, Missing>>()?;
    let worst = spreads.iter().copied().fold(0.0, f64::max);
    Ok(J::of(worst < 0.02, "within 2 %", format!("within {:.2} %", worst * 100.0), ""))
}

fn cr8(e: &Evidence) -> Verdict {
    let column = column(e, 2, "Flow4")?;
    let ok = column.iter().all(|v| (8000.0..=8190.0).contains(v));
    let note = "held to the printed range; the class borrows what the others leave, and in the document it had 0.7 % less of it";
    Ok(J::of(ok, "8.00 to 8.19 Mbit/s", show(&column), note))
}

fn cr9(e: &Evidence) -> Verdict {
    let mut below = 0;
    for flow in ["Flow1", "Flow2", "Flow3"] {
        let pairs = column(e, 1, flow)?.into_iter().zip(column(e, 2, flow)?);
        below += pairs.filter(|(fifo, cbq)| cbq < &(fifo * 0.999)).count();
    }
    Ok(J::of(below == 0, "CBQ at least FIFO in all 15", format!("below in {below} of 15 cells"), ""))
}

fn cr10(e: &Evidence) -> Verdict {
    let (one, two, three) = (column(e, 3, "Flow1")?, column(e, 3, "Flow2")?, column(e, 3, "Flow3")?);
    let measured = format!("Flow1 {}; TCP {}; Flow3 {}", show(&one), show(&two), show(&three));
    Ok(J::of(falls(&one) && falls(&two) && rises(&three), "62 to 11, 1144 to 72, 7817 to 9166", measured, ""))
}

fn cr11(e: &Evidence) -> Verdict {
    let worst = protected(e, 4, &["Flow1"])?;
    Ok(J::of(worst == 0.0, "no loss", format!("at most {:.2} % lost", worst * 100.0), ""))
}

fn cr12(e: &Evidence) -> Verdict {
    let column = column(e, 4, "Flow2")?;
    let mut lost = 0;
    for (row, _) in ROWS {
        lost += e.flow(&format!("4.4-table-4-{row}"), "Flow2")?.packets.2;
    }
    let near = column.iter().all(|v| (1060.0 * (1.0 - PLAY)..=1140.0 * (1.0 + PLAY)).contains(v));
    let measured = format!("{}; {lost} segments lost", show(&column));
    let note = "the rate is the printed one, its reason is not: nothing is lost, so congestion control cuts nothing. A window of 8 KB is \
                acknowledged by the timer alone (50 ms), because the Suns announce FDDI's segments";
    Ok(J::of(near && lost > 0, "1.06 to 1.14 of 4 Mbit/s, by slow start after loss", measured, note))
}

fn cr13(e: &Evidence) -> Verdict {
    let column = column(e, 4, "Flow3")?;
    Ok(J::of(column.iter().all(|&v| v > 5000.0), "8.05 to 8.20, rate 5 Mbit/s", show(&column), ""))
}

fn cr14(e: &Evidence) -> Verdict {
    let (cbq, fifo) = (column(e, 4, "Flow2")?, column(e, 3, "Flow2")?);
    let of = |c: &[f64]| c[4] / c[0];
    let measured = format!(
        "{:.0} at 49.97 against {:.0} kbit/s at 8.00: {:.2} of it; with the FIFO {:.3} of it",
        cbq[4],
        cbq[0],
        of(&cbq),
        of(&fifo)
    );
    let note = "the printed 116.80 is taken for a misprint; that TCP breaks down without CBQ is asked for too, because its window limits it";
    Ok(J::of(of(&cbq) >= 0.9 && of(&fifo) < 0.9, "does not break down", measured, note))
}

fn cr15(e: &Evidence) -> Verdict {
    const RUN: &str = "claim-CR15";
    let (two, _) = classes(e, RUN)?;
    let (known, new) = (arrived(e, RUN, "known")?, arrived(e, RUN, "new")?);
    let measured = format!("1:2 has {two} packets: the known host's {known}, none of the new one's {new}");
    Ok(J::of(same(two, known) && new > 100, "a new address is outside", measured, ""))
}

fn cr16(e: &Evidence) -> Verdict {
    const RUN: &str = "claim-CR16";
    let (_, three) = classes(e, RUN)?;
    let all = arrived(e, RUN, "known")? + arrived(e, RUN, "new")?;
    let measured = format!("1:3 has {three} packets of {all} of the known and the new host");
    Ok(J::of(same(three, all), "a new host that sets it is inside", measured, ""))
}

fn cr17(e: &Evidence) -> Verdict {
    const RUN: &str = "claim-CR17";
    let (two, three) = classes(e, RUN)?;
    let address = arrived(e, RUN, "address")?;
    let both = arrived(e, RUN, "port")? + arrived(e, RUN, "tos")?;
    let other = arrived(e, RUN, "other")?;
    let measured =
        format!("1:2 {two} (address {address}), 1:3 {three} (port and ToS {both}), {other} in neither");
    Ok(J::of(same(two, address) && same(three, both) && other > 100, "various criteria", measured, ""))
}

fn cr18(e: &Evidence) -> Verdict {
    let held = [cr6(e)?, cr7(e)?, cr11(e)?].iter().filter(|j| j.holds()).count();
    Ok(J::of(held == 3, "CR6, CR7, CR11", format!("{held} of 3 hold"), ""))
}

fn cr19(e: &Evidence) -> Verdict {
    let mut parts = Vec::new();
    let mut ok = true;
    for flow in ["Flow1", "Flow2", "Flow3", "Flow4"] {
        let ethernet = rate(e, "4.3-table-2-50", flow)?;
        let serial = rate(e, "claim-CR19", flow)?;
        ok &= flow == "Flow4" || (serial / ethernet - 1.0).abs() < 0.01;
        parts.push(format!("{flow} {serial:.1} and {ethernet:.1}"));
    }
    let note = "the recommendation to small firms is no matter of measurement; best effort takes what the other line has more";
    Ok(J::of(
        ok,
        "with all interface cards",
        format!("serial and Ethernet: {} kbit/s", parts.join(", ")),
        note,
    ))
}

fn cr20(e: &Evidence) -> Verdict {
    let mut worst: f64 = 0.0;
    for (run, flows) in
        [("claim-CR20-udp", &["Flow1", "Flow2", "Flow3"][..]), ("claim-CR20-mixed", &["Flow1"])]
    {
        for flow in flows {
            worst = worst.max(e.flow(run, flow)?.loss());
        }
    }
    let tcp = rate(e, "claim-CR20-mixed", "Flow2")?;
    let effort = rate(e, "claim-CR20-udp", "Flow4")?;
    let measured = format!(
        "carried out: at 49.97 MBit/s {:.2} % of the protected flows lost, TCP {tcp:.0} kbit/s, best effort {effort:.0} kbit/s",
        worst * 100.0
    );
    Ok(J::explored(
        "left out, its implementation not complete",
        measured,
        "prio of Linux 6.12 protects these flows",
    ))
}

fn cr21(e: &Evidence) -> Verdict {
    let effort = rate(e, "claim-CR21", "Flow4")?;
    let voice = e.flow("claim-CR21", "Flow1")?;
    let measured = format!(
        "carried out: best effort of 49.97 MBit/s policed to {effort:.0} kbit/s, {:.2} % of the voice lost behind a FIFO",
        voice.loss() * 100.0
    );
    Ok(J::explored("exist, not examined", measured, "policed to 6.5 MBit/s and tagged at the input"))
}

/// Figures 4 and 5: throughput against what best effort is offered, FIFO and CBQ.
pub fn figures(e: &Evidence) -> Vec<Figure> {
    let mut all = Vec::new();
    for (table, name, flows) in [
        (1, "figure-4-left-fifo", &["Flow1", "Flow2", "Flow3", "Flow4"][..]),
        (2, "figure-4-right-cbq", &["Flow1", "Flow2", "Flow3", "Flow4"]),
        (3, "figure-5-left-fifo", &["Flow1", "Flow2", "Flow3"]),
        (4, "figure-5-right-cbq", &["Flow1", "Flow2", "Flow3"]),
    ] {
        let title = format!("{}: throughput, best effort offered", name.replace('-', " "));
        let mut picture = chart(&title, Unit::BitPerSecond, (0.0, 50.0), " MBit/s");
        picture.log = true;
        for flow in flows {
            if let Ok(column) = column(e, table, flow) {
                let points = ROWS.iter().zip(column).map(|(row, v)| (row.1, v * 1e3)).collect();
                curve(&mut picture, flow, Stroke::Line, points);
            }
        }
        all.push(Figure::of(name, &picture));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::evidence::{FlowRun, Run};
    use super::*;

    /// Table 4 (or 2) with the same rates in every row: Flow2 as TCP in kbit/s as `ftp` prints, so many segments lost.
    fn rows(table: u32, kbit: f64, lost: u64) -> Evidence {
        let mut e = Evidence::default();
        let section = if table < 3 { "4.3" } else { "4.4" };
        for (row, _) in ROWS {
            let flow = |name: &str| FlowRun {
                name: name.to_owned(),
                packets: (10_000 + lost, (kbit * 1e3 * 10.0 / 8.0 / 429.0) as u64, lost),
                payload_bytes: (kbit / 8.0 * 1024.0 * 10.0) as u64,
                life: (0.0, 10.0),
                ..FlowRun::default()
            };
            let flows = if table < 3 { vec![flow("Flow4")] } else { vec![flow("Flow2"), flow("Flow3")] };
            e.runs.insert(format!("{section}-table-{table}-{row}"), Run { flows, ..Run::default() }.into());
        }
        e
    }

    #[test]
    fn a_printed_range_is_not_widened() {
        assert!(cr8(&rows(2, 8100.0, 0)).unwrap().holds());
        assert!(!cr8(&rows(2, 8247.5, 0)).unwrap().holds());
    }

    #[test]
    fn a_reason_must_be_there_with_the_rate() {
        assert!(cr12(&rows(4, 1100.0, 3)).unwrap().holds());
        assert!(!cr12(&rows(4, 1100.0, 0)).unwrap().holds());
        assert!(!cr12(&rows(4, 900.0, 3)).unwrap().holds());
    }
}
