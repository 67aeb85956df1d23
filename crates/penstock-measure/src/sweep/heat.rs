//! Pictures of a grid: heat maps of two parameters, and ranges of values that are no numbers.

use super::page::{different, shown};
use super::{Figure, Sweep};
use crate::number::significant;
use crate::plot::escape;
use crate::quantile;
use std::fmt::Write as _;

/// Most values of a parameter on one side of a map.
const SIDE: usize = 40;
/// Cells in which numbers are written.
const WRITTEN: usize = 12;

/// A map of each figure over the first two parameters that vary; other parameters are taken together by the median of their points.
pub(super) fn maps(sweep: &Sweep) -> Vec<String> {
    if sweep.design != "grid" {
        return Vec::new();
    }
    let several = |p: &usize| (2..=SIDE).contains(&different(sweep, *p).len());
    let mut varied = (0..sweep.parameters.len()).filter(several);
    let (Some(x), Some(y)) = (varied.next(), varied.next()) else { return Vec::new() };
    let mut all = Vec::new();
    for (f, figure) in shown(sweep) {
        all.extend(map(sweep, f, figure, x, y));
    }
    all
}

fn map(sweep: &Sweep, f: usize, figure: &Figure, x: usize, y: usize) -> Option<String> {
    let (columns, rows) = (different(sweep, x), different(sweep, y));
    let median = |column: &str, row: &str| {
        let here = |p: &usize| sweep.points[*p].values[x] == column && sweep.points[*p].values[y] == row;
        let points = (0..sweep.points.len()).filter(here);
        let mut values: Vec<f64> = points.filter_map(|p| sweep.median(p, f)).collect();
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then(|| quantile::of_sorted(&values, 0.5))
    };
    let cells: Vec<Vec<Option<f64>>> =
        rows.iter().map(|r| columns.iter().map(|c| median(c, r)).collect()).collect();
    let known: Vec<f64> = cells.iter().flatten().copied().flatten().collect();
    let low = known.iter().copied().fold(f64::INFINITY, f64::min);
    let high = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if known.is_empty() {
        return None;
    }
    let (factor, unit) = figure.kind().scale(high);
    let wide = rows.iter().map(|r| r.chars().count()).max().unwrap_or(0).clamp(3, 24) as f64 * 6.8 + 10.0;
    let (left, top, width) = (wide, 46.0, 520.0);
    let (cell_wide, cell_high) =
        ((width - left - 4.0) / columns.len() as f64, if rows.len() > 12 { 14.0 } else { 26.0 });
    let height = top + cell_high * rows.len() as f64 + 44.0;
    let (across, down) = (&sweep.parameters[x].path, &sweep.parameters[y].path);
    let title = format!("{}: {across} across, {down} down", figure.what);
    let mut out = begin(&title, (width, height), unit, &format!("{}: median", figure.what));
    let _ = write!(out, "<text x=\"0\" y=\"34\">{}</text>", escape(&format!("{down} down, {across} across")));
    for (r, row) in rows.iter().enumerate() {
        let y = top + cell_high * r as f64;
        let _ = write!(
            out,
            "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left - 6.0,
            y + cell_high / 2.0 + 4.0,
            escape(row)
        );
        for (c, column) in columns.iter().enumerate() {
            let Some(value) = cells[r][c] else { continue };
            let x = left + cell_wide * c as f64;
            // From nearly none of the colour to all of it.
            let share = if high > low { (value - low) / (high - low) } else { 0.5 };
            let number = significant(value / factor);
            let _ = write!(
                out,
                "<rect class=\"cell f0\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{cell_wide:.1}\" height=\"{cell_high:.1}\" fill-opacity=\"{:.2}\">\
                 <title>{}</title></rect>",
                0.06 + 0.6 * share,
                escape(&format!("{column}, {row}: {number} {unit}"))
            );
            if columns.len() <= WRITTEN && cell_high > 20.0 {
                let _ = write!(
                    out,
                    "<text class=\"title mid\" x=\"{:.1}\" y=\"{:.1}\">{number}</text>",
                    x + cell_wide / 2.0,
                    y + cell_high / 2.0 + 4.0
                );
            }
        }
    }
    let below = top + cell_high * rows.len() as f64 + 16.0;
    // Names that have no room are left out between.
    let longest = columns.iter().map(|c| c.chars().count()).max().unwrap_or(1) as f64 * 6.8 + 6.0;
    let every = (longest / cell_wide).ceil().max(1.0) as usize;
    for (c, column) in columns.iter().enumerate().step_by(every) {
        let x = left + cell_wide * (c as f64 + 0.5);
        let _ = write!(out, "<text class=\"mid\" x=\"{x:.1}\" y=\"{below:.1}\">{}</text>", escape(column));
    }
    let _ = writeln!(
        out,
        "<text x=\"0\" y=\"{:.1}\">{} .. {} {}</text></svg>",
        below + 20.0,
        significant(low / factor),
        significant(high / factor),
        escape(unit)
    );
    Some(out)
}

/// A row for each point: median, confidence interval. For parameters that are words.
pub(super) fn ranges(sweep: &Sweep, f: usize, figure: &Figure) -> Option<String> {
    let (varied, _) = sweep.varied();
    let rows: Vec<(String, super::Summary)> = (0..sweep.points.len().min(SIDE))
        .filter_map(|p| {
            Some((
                varied.iter().map(|&n| sweep.points[p].values[n].as_str()).collect::<Vec<_>>().join(", "),
                sweep.summary(p, f)?,
            ))
        })
        .collect();
    let high = rows.iter().map(|r| r.1.max).fold(0.0, f64::max);
    if rows.is_empty() {
        return None;
    }
    let (factor, unit) = figure.kind().scale(high);
    let short = |name: &str| match name.chars().count() {
        0..=32 => name.to_owned(),
        _ => name.chars().take(31).chain(['…']).collect(),
    };
    let left = rows.iter().map(|r| short(&r.0).chars().count()).max().unwrap_or(0).max(4) as f64 * 6.8 + 12.0;
    let (top, step, width) = (40.0, 22.0, 520.0);
    let at = |x: f64| left + x / if high > 0.0 { high } else { 1.0 } * (width - left - 60.0);
    let mut out = begin(&figure.what, (width, top + step * rows.len() as f64 + 8.0), unit, &figure.what);
    for (n, (name, s)) in rows.iter().enumerate() {
        let y = top + step * (n as f64 + 0.5);
        let _ = write!(
            out,
            "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}<title>{}</title></text><path class=\"grid\" d=\"M{left:.1} {y:.1}H{:.1}\"/>\
             <path class=\"range\" d=\"M{:.1} {y:.1}H{:.1}\"/><circle class=\"f0\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left - 8.0,
            y + 4.0,
            escape(&short(name)),
            escape(name),
            width - 60.0,
            at(s.spread.low),
            at(s.spread.high),
            at(s.spread.median),
            width - 54.0,
            y + 4.0,
            significant(s.spread.median / factor)
        );
    }
    out.push_str("</svg>\n");
    Some(out)
}

/// The head of a picture: what it is, for those who cannot see it too, and its unit.
fn begin(label: &str, (width, height): (f64, f64), unit: &str, title: &str) -> String {
    format!(
        "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">\
         <text x=\"0\" y=\"14\"><tspan class=\"title\">{}</tspan>{}{}</text>",
        escape(label),
        escape(title),
        if unit.is_empty() { "" } else { ", " },
        escape(unit)
    )
}
