//! A study on one page: its claims, its numbers, its figures.

use super::{Figure, StudyReport};
use penstock_measure::plot::escape;
use std::fmt::Write;

const STYLE: &str = "body{font:15px system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1c2430;background:#fff}\
    table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .7rem;text-align:left;vertical-align:top;border-bottom:1px solid #ccc}\
    .n{text-align:right;font-variant-numeric:tabular-nums}.fails td,.open td{font-weight:600}.note{color:#5b6675;font-weight:400}\
    .figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(30rem,1fr));gap:1.5rem}figure{margin:0}figcaption{font-weight:600}";

/// The page, an HTML file that needs nothing else.
pub(super) fn page(report: &StudyReport, figures: &[Figure]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{STYLE}</style></head><body>\
         <h1>{0}</h1><p>{1}</p><p>{2}</p>\n",
        escape(report.study),
        escape(report.source),
        report.score()
    );
    let medians = report.medians();
    if !medians.is_empty() {
        page.push_str("<table><tr><th>median difference of</th><th class=\"n\"></th></tr>\n");
        for (table, median) in medians {
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td class=\"n\">{:.1} %</td></tr>",
                escape(table),
                median * 100.0
            );
        }
        page.push_str("</table>\n");
    }
    if !figures.is_empty() {
        page.push_str("<h2>Figures</h2>\n<div class=\"figures\">\n");
        for figure in figures {
            let name = escape(&figure.name.replace('-', " "));
            let _ = writeln!(page, "<figure><figcaption>{name}</figcaption>{}</figure>", figure.svg);
        }
        page.push_str("</div>\n");
    }
    page.push_str("<h2>Claims</h2>\n<table><tr><th></th><th></th><th>says</th><th>published</th><th>measured</th></tr>\n");
    for c in &report.claims {
        let [id, says, published, measured, note] =
            [&c.id, &c.says, &c.published, &c.measured, &c.note].map(|t| escape(t));
        let (verdict, terms) = (c.verdict, c.terms());
        let class = verdict.split(' ').next().unwrap_or_default();
        let _ = writeln!(
            page,
            "<tr class=\"{class}\"><td>{id}</td><td>{verdict}{terms}</td><td>{says}</td><td>{published}</td><td>{measured}\
             <div class=\"note\">{note}</div></td></tr>"
        );
    }
    page.push_str("</table>\n");
    if !report.numbers.is_empty() {
        page.push_str(
            "<h2>Numbers</h2>\n<table><tr><th>experiment</th><th>quantity</th><th>unit</th><th class=\"n\">published</th>\
             <th class=\"n\">median</th><th class=\"n\">from .. to</th><th class=\"n\">difference</th><th></th></tr>\n",
        );
    }
    for n in &report.numbers {
        let number = |x: Option<f64>| x.map_or("–".to_owned(), |x| format!("{x:.3}"));
        let difference = n.difference().map_or("–".to_owned(), |d| format!("{:+.1} %", d * 100.0));
        let why = n.excluded.as_ref().map_or(String::new(), |why| format!("not counted: {}", escape(why)));
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{difference}</td><td>{why}</td></tr>",
            escape(&n.experiment),
            escape(&n.quantity),
            escape(&n.unit),
            number(Some(n.published)),
            number(n.measured),
            n.range.map_or(String::new(), |[a, b]| format!("{a:.3} .. {b:.3}")),
        );
    }
    page.push_str("</table></body></html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_what_the_report_has() {
        let figure = Figure { name: "figure-4".to_owned(), svg: "<svg></svg>".to_owned() };
        let report = StudyReport { study: "cbq-router", source: "A & B", ..StudyReport::default() };
        let page = page(&report, &[figure]);
        assert!(
            page.contains("A &amp; B") && page.contains("<figcaption>figure 4</figcaption><svg>"),
            "{page}"
        );
        assert!(page.contains("0 of 0 claims hold"));
    }
}
