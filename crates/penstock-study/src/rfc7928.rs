//! The characterisation guidelines of RFC 7928 on any queue management that `tc` sets up.
//!
//! Source: RFC 7928, "Characterization Guidelines for Active Queue Management (AQM)", 2016. It says what to look at and sets no
//! bounds; those of `studies/rfc7928/claims.toml` are ours.

use super::matrix::{Kept, Plan};
use super::parameters::Setting;
use super::{Figure, Judgement as J, Matrix, Seen, Study, StudyReport};
use penstock_lab::experiment::{self, Experiment};
use penstock_lab::run::Outcome;
use penstock_measure::Record;
use penstock_measure::live::{Live, Panel};
use penstock_measure::number::Unit;
use penstock_measure::plot::{Chart, Line, Stroke, escape};
use penstock_measure::record::Group;
use penstock_measure::report::opening;
use penstock_model::Diagnostic;
use std::fmt::Write as _;

/// The scenarios, in the order of the RFC.
pub(super) const PARTS: &[&str] = &[
    "4.5-ecn",
    "5.1-tcp-friendly",
    "5.1-windows",
    "5.2-aggressive",
    "5.3-unresponsive",
    "5.4-scavenger",
    "6-rtt-fairness",
    "7-bursts",
    "8-levels",
    "8-stability",
    "8-capacity",
    "9-mixed",
    "10-several",
];

/// Rate of the line, bit/s, and of it at its slowest.
const LINE: f64 = 10e6;
const SLOW: f64 = 2e6;

/// What a kind needs to be told for a line of 10 Mbit/s, and what makes it mark.
fn words(aqm: &str) -> (String, &'static str) {
    let kind = aqm.split_whitespace().next().unwrap_or_default();
    let alone = aqm.trim() == kind;
    let text = match kind {
        "pfifo" if alone => "pfifo limit 250",
        "bfifo" if alone => "bfifo limit 375000",
        "red" if alone => {
            "red limit 375000 min 15000 max 45000 avpkt 1500 burst 17 bandwidth 10mbit probability 0.1"
        }
        "choke" if alone => {
            "choke limit 250 min 10 max 30 avpkt 1500 burst 17 bandwidth 10mbit probability 0.1"
        }
        _ => aqm.trim(),
    };
    let marks = match kind {
        "red" | "choke" | "pie" | "codel" | "fq_codel" | "fq_pie" if !aqm.contains("ecn") => "ecn",
        _ => "",
    };
    (text.to_owned(), marks)
}

/// Runs the scenarios with one queue management and each seed, and judges.
///
/// # Errors
/// No queue management was named; one that tc refuses, or that carries no packets here; a folder that cannot be written.
pub(super) fn runs(study: &Study, ask: &Matrix<'_>, seeds: u64) -> Result<Vec<Vec<Seen>>, Vec<Diagnostic>> {
    let Some(aqm) = ask.aqm else {
        let help = "write --aqm pie, or what tc takes: --aqm \"red limit 375000 avpkt 1500 …\"";
        return Err(vec![Diagnostic::error("which queue management?").help(help)]);
    };
    let (words, marks) = words(aqm);
    let claims = study.claims();
    let plan = Plan {
        names: PARTS.iter().copied().filter(|p| ask.only.is_none_or(|o| o == *p)).collect(),
        settings: &[Setting::stated()],
        seeds,
        read: &|part, _| read(study, part, &words, marks).map(|experiment| (experiment, false)),
        keep: &|_, outcome| Shown::of(outcome),
        judge: &|_, seed, kept: &Kept<Shown>| {
            let judged = claims.iter().map(|claim| match kept.get(&claim.experiment) {
                Some(shown) => judge(&claim.id, shown).unwrap_or_else(J::open),
                None => J::open("it was not run".to_owned()),
            });
            let parts = PARTS.iter().filter_map(|part| Some((*part, kept.get(*part).filter(|_| seed == 1)?)));
            Seen {
                judged: judged.collect(),
                measured: Vec::new(),
                figures: parts.map(|(part, s)| Figure::of(part, &picture(part, s))).collect(),
            }
        },
    };
    plan.run(ask).map_err(|faults| named(aqm, faults))
}

/// What tc says of the words of `--aqm`: its place is the command line, not a scenario's file, and it is said once.
fn named(aqm: &str, faults: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut all: Vec<Diagnostic> = Vec::new();
    for fault in faults {
        let fault = match fault.message.strip_prefix("l: ") {
            Some(said) => Diagnostic::error(format!("--aqm \"{aqm}\": {said}")).help(fault.help),
            None => fault,
        };
        if !all.contains(&fault) {
            all.push(fault);
        }
    }
    all
}

/// What is under test.
pub(super) fn remark(aqm: &str) -> String {
    format!("Queue management: {}.\n", words(aqm).0)
}

/// The scenarios' pictures and the page that has them all.
pub(super) fn pictures(aqm: &str, drawn: &[Figure], report: &StudyReport) -> Vec<(String, String)> {
    let page = page(&words(aqm).0, report, drawn);
    let mut all: Vec<(String, String)> = drawn.iter().map(|f| (format!("{}.svg", f.name), f.svg())).collect();
    all.push(("rfc7928.html".to_owned(), page));
    all
}

/// A scenario with the queue management in its place.
fn read(study: &Study, part: &str, words: &str, marks: &str) -> Result<Experiment, Vec<Diagnostic>> {
    let path = format!("{}/{part}.toml", study.name);
    let text = study.text(&format!("{part}.toml")).replace("AQM ECN", &format!("{words} {marks}"));
    experiment::parse_with(&text.replace("AQM", words), &path, &|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        study.find_text(name).map(str::to_owned).ok_or_else(|| "there is no such file".to_owned())
    })
}

/// What the judges need of a run.
struct Shown {
    record: Record,
    /// Bytes queued before the line over time: the longest chain of qdiscs counts, which is the root.
    backlog: Vec<(f64, f64)>,
    /// Goodput of all groups together over time, bit/s.
    goodput: Vec<(f64, f64)>,
}

impl Shown {
    fn of(outcome: &Outcome) -> Shown {
        let record = outcome.record.clone();
        let root = record
            .devices
            .iter()
            .find(|d| d.host == "l" && d.dev == "eth0")
            .and_then(|d| d.qdiscs.first())
            .map(|q| format!("eth0 {} {}", q.kind, q.handle));
        let backlog =
            root.map_or(Vec::new(), |object| outcome.series.points("l", &object, "backlog_bytes").to_vec());
        let mut goodput: Vec<(f64, f64)> = Vec::new();
        // Connections that come later have fewer samples: by time, not by number.
        let flows = record.flows.iter().filter(|f| f.group.is_some() && f.from != "z");
        for flow in flows {
            for &(t, v) in outcome.series.points("", &format!("flow {}", flow.name), "goodput_bit_s") {
                match goodput.binary_search_by(|p| p.0.total_cmp(&t)) {
                    Ok(i) => goodput[i].1 += v,
                    Err(i) => goodput.insert(i, (t, v)),
                }
            }
        }
        Shown { record, backlog, goodput }
    }
    fn group(&self, name: &str) -> Result<&Group, String> {
        self.record.groups.iter().find(|g| g.name == name).ok_or_else(|| format!("there is no group {name}"))
    }
    /// Goodput of groups together, Mbit/s.
    fn mbit(&self, names: &[&str]) -> Result<f64, String> {
        names.iter().map(|n| self.group(n).map(|g| g.goodput_bit_s / 1e6)).sum()
    }
    /// Mean wait before the line, ms.
    fn wait(&self, host: &str, dev: &str) -> Result<f64, String> {
        let device = self.record.devices.iter().find(|d| d.host == host && d.dev == dev);
        device.and_then(|d| d.sojourn_ms).map(|w| w.mean).ok_or_else(|| "nothing waited".to_owned())
    }
    /// Mean of a curve in a stretch of time.
    fn mean(points: &[(f64, f64)], from: f64, to: f64) -> Result<f64, String> {
        let inside: Vec<f64> = points.iter().filter(|p| p.0 >= from && p.0 < to).map(|p| p.1).collect();
        match inside.len() {
            0 => Err("nothing was sampled then".to_owned()),
            n => Ok(inside.iter().sum::<f64>() / n as f64),
        }
    }
    /// Mean queue in a stretch of time as the delay that it means, ms.
    fn queue(&self, from: f64, to: f64, rate: f64) -> Result<f64, String> {
        Ok(Shown::mean(&self.backlog, from, to)? * 8.0 / rate * 1e3)
    }
    /// Share of a group's packets that were lost.
    fn loss(&self, name: &str) -> Result<f64, String> {
        let group = self.group(name)?;
        let lost: u64 = group.links.iter().map(|l| l.lost_packets).sum();
        Ok(lost as f64 / (group.sent_packets.max(1)) as f64)
    }
}

fn at_least(least: f64, measured: f64, unit: &str) -> J {
    J::of(measured >= least, &format!("at least {least} {unit}"), format!("{measured:.2} {unit}"), "")
}
fn at_most(most: f64, measured: f64, unit: &str) -> J {
    J::of(measured <= most, &format!("at most {most} {unit}"), format!("{measured:.2} {unit}"), "")
}

fn judge(id: &str, s: &Shown) -> Result<J, String> {
    let wait = || s.wait("l", "eth0");
    Ok(match id {
        "4.5-ecn" => {
            let marked: u64 = s.group("ecn")?.links.iter().map(|l| l.marked_packets).sum();
            if marked == 0 {
                return Err("this queue management does not mark".to_owned());
            }
            let loss = s.loss("ecn")? * 100.0;
            let measured = format!("{marked} marked, {loss:.2} % lost");
            J::of(loss <= 0.5, "marks, at most 0.5 % lost", measured, "")
        }
        "5.1-tcp-friendly" => at_least(8.0, s.mbit(&["friendly"])?, "Mbit/s"),
        "5.2-aggressive" => at_least(8.0, s.mbit(&["friendly", "aggressive"])?, "Mbit/s"),
        "5.1-tcp-friendly/2" | "5.1-windows" | "5.2-aggressive/2" | "5.3-unresponsive/2"
        | "5.4-scavenger/2" => at_most(50.0, wait()?, "ms"),
        "5.1-windows/2" => {
            let half =
                |name: &str| Ok::<f64, String>(s.group(name)?.completion_ms.ok_or("none completed")?.p50);
            at_most(3.0, half("three")? / half("ten")?, "times")
        }
        "5.2-aggressive/3" => {
            at_least(0.25, s.mbit(&["friendly"])? / s.mbit(&["aggressive"])?, "of the CUBIC senders'")
        }
        "5.3-unresponsive" => at_least(3.0, s.mbit(&["friendly"])?, "Mbit/s"),
        "5.4-scavenger" => at_least(8.0, s.mbit(&["friendly", "scavenger"])?, "Mbit/s"),
        "5.4-scavenger/3" => {
            at_most(1.0, s.mbit(&["scavenger"])? / s.mbit(&["friendly"])?, "of the CUBIC senders'")
        }
        "6-rtt-fairness" => at_most(4.0, s.mbit(&["short"])? / s.mbit(&["long"])?, "times"),
        "7-bursts" => at_most(300.0, s.group("web")?.completion_ms.ok_or("none completed")?.p50, "ms"),
        "7-bursts/2" => at_most(5.0, s.loss("frames")? * 100.0, "%"),
        "8-levels" => at_most(50.0, s.queue(5.0, 20.0, LINE)?, "ms"),
        "8-levels/2" => at_most(75.0, s.queue(25.0, 40.0, LINE)?, "ms"),
        "8-levels/3" => at_most(100.0, s.queue(45.0, 60.0, LINE)?, "ms"),
        "8-stability" => at_most(100.0, s.queue(25.0, 40.0, LINE)?, "ms"),
        "8-stability/2" => at_most(50.0, s.queue(45.0, 60.0, LINE)?, "ms"),
        "8-capacity" => at_most(100.0, s.queue(30.0, 40.0, SLOW)?, "ms"),
        "8-capacity/2" => at_least(8.0, Shown::mean(&s.goodput, 45.0, 60.0)? / 1e6, "Mbit/s"),
        "9-mixed" => at_most(76.0, s.group("voice")?.owd_ms.ok_or("nothing arrived")?.p95, "ms"),
        "9-mixed/2" => at_most(2.0, s.loss("voice")? * 100.0, "%"),
        "9-mixed/3" => at_most(700.0, s.group("web")?.completion_ms.ok_or("none completed")?.p50, "ms"),
        "10-several" => at_least(8.0, s.mbit(&["through", "cross"])?, "Mbit/s"),
        "10-several/2" => at_most(60.0, wait()?.max(s.wait("r", "eth1")?), "ms"),
        _ => return Err(format!("no judge for {id}")),
    })
}

/// Queue and goodput of a scenario over time.
fn picture(part: &str, s: &Shown) -> Chart {
    let mut chart =
        Chart::new(format!("{part}: queue before the line"), Unit::Byte, (0.0, s.record.duration_s));
    let points = s.backlog.clone();
    chart.lines.push(Line { name: "queue".to_owned(), colour: 0, stroke: Stroke::Line, points });
    chart
}

/// All scenarios on one page.
fn page(words: &str, report: &StudyReport, drawn: &[Figure]) -> String {
    let title = format!("RFC 7928: {words}");
    let mut page = opening(&title);
    let _ = write!(
        page,
        "<header><h1>{}</h1><p class=\"facts\"><span>{}</span></p></header>\n<section id=\"claims\"><h2>Scenarios</h2><div class=\"wide\" tabindex=\"0\"><table><thead><tr>\
         <th>scenario</th><th>asked</th><th>bound</th><th>measured</th><th></th></tr></thead><tbody>\n",
        escape(&title),
        escape(&report.score())
    );
    for c in &report.claims {
        let cells =
            [&c.experiment, &c.says, &c.published, &c.measured].map(|t| format!("<td>{}</td>", escape(t)));
        let last = match c.note.is_empty() {
            true => format!("{}{}", c.verdict, c.terms()),
            false => format!("{}{}: {}", c.verdict, c.terms(), c.note),
        };
        let class = match c.verdict {
            J::HOLDS => "ok",
            J::FAILS => "bad",
            _ => "",
        };
        let _ = writeln!(page, "<tr>{}<td class=\"{class}\">{}</td></tr>", cells.concat(), escape(&last));
    }
    page.push_str("</tbody></table></div></section>\n");
    let seconds = drawn.iter().map(|f| f.chart.x.1).fold(0.0, f64::max);
    let mut live = Live::new(seconds);
    let figures: String =
        drawn.iter().map(|f| live.figure(&Panel::of_chart(f.name.clone(), &f.chart))).collect();
    if !figures.is_empty() {
        let _ = writeln!(
            page,
            "<section id=\"queues\"><h2>Queues</h2><div class=\"charts\" data-bar>{figures}</div></section>"
        );
    }
    page.push_str("</main>\n");
    page.push_str(&live.scripts(seconds));
    page.push_str("</body></html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_reads_with_any_words() {
        let study = Study::find("rfc7928").unwrap();
        for aqm in ["pie", "red", "fq_codel limit 1000", "pfifo"] {
            let (words, marks) = words(aqm);
            for part in PARTS {
                let e = read(study, part, &words, marks).unwrap_or_else(|d| panic!("{part}: {}", d[0]));
                let setup: String = e.hosts.iter().flat_map(|h| &h.setup).map(|s| s.text.as_str()).collect();
                assert!(setup.contains(&words) && !setup.contains("AQM"), "{setup}");
            }
        }
        assert_eq!(words("pie").1, "ecn");
        assert_eq!(words("red limit 9 ecn"), ("red limit 9 ecn".to_owned(), ""));
    }

    #[test]
    fn a_fifo_and_codel_are_told_apart() {
        let ask = Matrix {
            only: Some("5.1-tcp-friendly"),
            out: None,
            page: false,
            seeds: Some(1),
            duration: Some(penstock_model::Span::from_secs(25)),
            aqm: Some("pfifo"),
            jobs: None,
            progress: &|_, _| {},
        };
        let study = Study::find("rfc7928").unwrap();
        let verdicts = |aqm| {
            let report = study.run(&Matrix { aqm: Some(aqm), ..ask }).unwrap_or_else(|d| panic!("{}", d[0]));
            report.claims.iter().map(|c| c.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts("pfifo"), ["holds", "fails"]);
        assert_eq!(verdicts("codel"), ["holds", "holds"]);
        let nameless = study.run(&Matrix { aqm: None, ..ask }).unwrap_err();
        assert_eq!(nameless[0].message, "which queue management?");
    }
}
