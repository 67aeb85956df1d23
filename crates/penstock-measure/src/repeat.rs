//! Repetitions: what several runs of one experiment with different seeds say together.

use crate::fairness::confidence;
use crate::record::{Group, Record};
use crate::table::{Align, Table};

/// A figure of a group: its name, and where it stands.
type Figure = (&'static str, fn(&Group) -> Option<f64>);

/// The figures of a group that are told, rates in Mbit/s, times in ms, shares in percent.
const FIGURES: [Figure; 9] = [
    ("goodput, Mbit/s", |g| Some(g.goodput_bit_s / 1e6)),
    ("throughput, Mbit/s", |g| Some(g.throughput_bit_s / 1e6)),
    ("Jain's index", |g| g.fairness),
    ("min/max", |g| g.min_over_max),
    ("retransmitted, %", |g| g.retransmission_rate.map(|r| r * 100.0)),
    (LOST, |g| Some(g.links.iter().fold(0.0, |sum, l| sum + l.lost_bit_s / 1e3))),
    (MARKED, |g| Some(g.links.iter().fold(0.0, |sum, l| sum + l.marked_bit_s / 1e3))),
    ("one-way delay, mean, ms", |g| g.owd_ms.map(|d| d.mean)),
    ("completion, median, ms", |g| g.completion_ms.map(|d| d.p50)),
];

const LOST: &str = "lost, kbit/s";
const MARKED: &str = "marked, kbit/s";

/// Whether the ground of a run tells a figure: where the packets of a group were lost or marked only the simulator knows.
fn told(what: &str, record: &Record) -> bool {
    record.ground == "sim" || ![LOST, MARKED].contains(&what)
}

/// A table of the groups: one run's figures, or the mean of several with half the width of its 95 % confidence interval and the
/// range. Empty without groups.
pub fn groups(records: &[&Record]) -> String {
    let Some(first) = records.first().filter(|r| !r.groups.is_empty()) else { return String::new() };
    let several = records.len() > 1;
    let mut heads = vec![("group", Align::Left), ("figure", Align::Left)];
    heads.extend(match several {
        true => vec![("mean", Align::Right), ("± 95 %", Align::Right), ("from .. to", Align::Right)],
        false => vec![("", Align::Right)],
    });
    let mut table = Table::new(&heads);
    for name in first.groups.iter().map(|g| g.name.as_str()) {
        for (what, figure) in FIGURES {
            let known = records.iter().filter(|r| told(what, r));
            let found = known.filter_map(|r| r.groups.iter().find(|g| g.name == name));
            let values: Vec<f64> = found.filter_map(figure).collect();
            let Some((mean, half)) = confidence(&values) else { continue };
            let mut cells = vec![name.to_owned(), what.to_owned(), format!("{mean:.3}")];
            if several {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                cells.push(half.map_or("–".to_owned(), |h| format!("{h:.3}")));
                cells.push(format!("{least:.3} .. {most:.3}"));
            }
            table.row(cells);
        }
    }
    table.text(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FORMAT;

    fn record(goodput_bit_s: f64) -> Record {
        let text = format!(
            "{{\"format\":{FORMAT},\"penstock\":\"0\",\"title\":\"t\",\"ground\":\"sim\",\"seed\":1,\"duration_s\":1.0,\"rig\":{{\"hosts\":[],\"links\":[]}},\
             \"experiment\":\"\",\"groups\":[{{\"name\":\"web\",\"flows\":2,\"goodput_bit_s\":{goodput_bit_s},\"throughput_bit_s\":1.0,\"sent_packets\":0}}]}}"
        );
        Record::from_json(&text).unwrap()
    }

    #[test]
    fn several_runs_have_a_mean_and_its_width() {
        let runs = [record(1e6), record(2e6), record(3e6)];
        let text = groups(&runs.iter().collect::<Vec<_>>());
        // 4.303 * 1 / sqrt(3)
        assert!(
            text.contains("2.000") && text.contains("2.484") && text.contains("1.000 .. 3.000"),
            "{text}"
        );
        let one = groups(&[&runs[0]]);
        assert!(one.contains("goodput, Mbit/s") && !one.contains("95 %"), "{one}");
        assert_eq!(groups(&[]), "");
        // A figure that a ground does not give is absent, not zero.
        let real = Record { ground: "virtual".to_owned(), ..runs[0].clone() };
        let text = groups(&[&real]);
        assert!(one.contains(LOST) && text.contains("goodput") && !text.contains(LOST), "{text}");
    }
}
