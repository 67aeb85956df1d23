//! The comparison as a text.

use super::{Kind, Row, Tally, Verdict, advice};
use crate::table::{Align, Table};
use std::fmt::Write as _;

/// Most figures of a group that are printed when not all are wanted.
const MOST: usize = 20;

/// The rows in groups, with the names of both sides. Unless `all` are wanted, noise is counted and not printed, and of each group the
/// [`MOST`] greatest effects.
pub fn text(before: &str, after: &str, rows: &[Row], all: bool) -> String {
    let mut out = String::new();
    for kind in Kind::ALL {
        let group: Vec<&Row> = rows.iter().filter(|r| r.group == kind).collect();
        if group.is_empty() {
            continue;
        }
        let worth: Vec<&Row> = group.iter().copied().filter(|r| all || !r.is_noise()).collect();
        let most = if all { worth.len() } else { MOST };
        let columns = [
            (kind.heading(), Align::Left),
            ("", Align::Left),
            (before, Align::Right),
            (after, Align::Right),
            ("difference", Align::Right),
            ("its interval", Align::Right),
            ("", Align::Left),
        ];
        let mut table = Table::new(&columns);
        for row in worth.iter().take(most) {
            table.row([
                format!("  {}", row.subject),
                row.figure.to_owned(),
                row.side(&row.before),
                row.side(&row.after),
                row.change(),
                row.bounds(),
                row.verdict.name().to_owned(),
            ]);
        }
        match table.is_empty() {
            true => _ = writeln!(out, "{}", kind.heading()),
            false => out.push_str(&table.text(0)),
        }
        if worth.len() > most {
            let _ = writeln!(out, "  … and {} with smaller effects (--all)", worth.len() - most);
        }
        let folded: Vec<String> = folded(&group).filter(|_| !all).collect();
        if !folded.is_empty() {
            let _ = writeln!(out, "  not shown: {} (--all)", folded.join(", "));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "{}", Tally::of(rows).words());
    if let Some(advice) = rows.first().and_then(|r| advice(r.before.runs, r.after.runs)) {
        let _ = writeln!(out, "note: {advice}");
    }
    out
}

/// What of a group is noise, in words.
pub(super) fn folded<'a>(group: &'a [&'a Row]) -> impl Iterator<Item = String> + 'a {
    let words = [
        (Verdict::Equal, "equal"),
        (Verdict::Within, "within the spread"),
        (Verdict::Unknown, "less than 1 % apart"),
    ];
    words.into_iter().filter_map(|(verdict, words)| {
        let count = group.iter().filter(|r| r.is_noise() && r.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {words}"))
    })
}
