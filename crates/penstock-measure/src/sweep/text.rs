//! A sweep as a table for a terminal.

use super::Sweep;
use crate::table::{Align, Table};

/// Most rows of the table.
const MAX_ROWS: usize = 120;

/// The figures that are shown, point by point: median, its confidence interval, least and greatest.
pub fn text(sweep: &Sweep) -> String {
    let (varied, fixed) = sweep.varied();
    let mut heads: Vec<(&str, Align)> =
        varied.iter().map(|&n| (sweep.parameters[n].path.as_str(), Align::Left)).collect();
    heads.extend([
        ("figure", Align::Left),
        ("median", Align::Right),
        ("95 % interval", Align::Right),
        ("from .. to", Align::Right),
        ("best", Align::Left),
    ]);
    let mut table = Table::new(&heads);
    let front = sweep.front();
    let (mut rows, mut more) = (0, 0);
    for (p, point) in sweep.points.iter().enumerate() {
        let mut first = true;
        for (f, figure) in sweep.figures.iter().enumerate().filter(|(_, f)| f.shown) {
            let Some(s) = sweep.summary(p, f) else { continue };
            rows += 1;
            if rows > MAX_ROWS {
                more += 1;
                continue;
            }
            // What stands in the row above is not said again.
            let values = varied.iter().map(|&n| if first { point.values[n].clone() } else { String::new() });
            let unit = figure.kind();
            let several = s.spread.runs > 1;
            let interval = |low: f64, high: f64| match several {
                true if low < high => format!("{} .. {}", unit.show(low), unit.show(high)),
                _ => String::new(),
            };
            // Fewer than six runs do not reach 95 %.
            let sure = match s.spread.confidence {
                c if c >= 0.95 || s.spread.low == s.spread.high => String::new(),
                c => format!(" ({:.0} %)", c * 100.0),
            };
            let cells = values.chain([
                figure.what.clone(),
                unit.show(s.spread.median),
                interval(s.spread.low, s.spread.high) + &sure,
                interval(s.min, s.max),
                if first && front.contains(&p) { "*".to_owned() } else { String::new() },
            ]);
            table.row(cells);
            first = false;
        }
    }
    let runs = sweep.runs.len();
    let mut text = format!(
        "{}: {} points, {} seeds, {runs} runs\n\n",
        sweep.title,
        sweep.points.len(),
        sweep.seeds.len()
    );
    if !fixed.is_empty() {
        text += &format!("  everywhere: {fixed}\n\n");
    }
    if !table.is_empty() {
        text += &table.text(2);
    }
    if more > 0 {
        text += &format!("  and {more} more rows in sweep.json\n");
    }
    if let Some((a, b)) = sweep.pareto {
        let (a, b) = (&sweep.figures[a], &sweep.figures[b]);
        let word = |more: bool| if more { "more" } else { "less" };
        text += &format!(
            "  *: no other point is better in both {} ({}) and {} ({})\n",
            a.what,
            word(a.more_is_better()),
            b.what,
            word(b.more_is_better())
        );
    }
    if let Some((count, first)) = sweep.refused() {
        let why = first.refused.as_deref().unwrap_or_default();
        text += &format!(
            "\n{count} of {runs} runs could not be made; the first, {} seed={}:\n{}\n",
            sweep.point_text(first.point),
            first.seed,
            why.trim_end()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_point_and_figure() {
        let mut sweep = sample();
        sweep.runs[1].refused = Some("tbf: the \"burst\" parameter is mandatory.".into());
        let text = text(&sweep);
        assert!(text.starts_with("A line <1>: 6 points, 2 seeds, 12 runs\n"), "{text}");
        assert!(
            text.contains("13.5 ms  13 ms .. 14 ms (50 %)  13 ms .. 14 ms") && text.contains("9 Mbit/s"),
            "{text}"
        );
        assert!(!text.contains("call lost"), "{text}");
        assert_eq!(text.lines().filter(|l| l.ends_with("  *")).count(), 2, "{text}");
        assert!(
            text.contains("1 of 12 runs could not be made; the first, link.uplink.rate=10mbit"),
            "{text}"
        );
    }
}
