//! A study on one page that prints as a report of the replication: figures, tables, claims, what was taken.

use super::report::{ClaimRow, NumberRow};
use super::{Figure, Judgement, Study, StudyReport};
use penstock_measure::plot::{CHART_STYLE, RANGE_STYLE, STYLE, escape};
use penstock_measure::report::NO_ICON;
use std::fmt::Write;

const PAGE_STYLE: &str = include_str!("page.css");

/// The page, an HTML file that needs nothing else.
pub(super) fn page(study: &Study, report: &StudyReport, figures: &[Figure]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">{NO_ICON}\
         <title>{0}</title><style>{STYLE}{CHART_STYLE}{RANGE_STYLE}{PAGE_STYLE}</style></head><body><main>\n\
         <header><h1>{0}</h1><p class=\"source\">{1}</p>",
        escape(report.study),
        escape(report.source),
    );
    head(&mut page, report);
    page.push_str("</header>\n");
    drawings(&mut page, report, figures);
    tables(&mut page, report);
    claims(&mut page, report);
    parameters(&mut page, study);
    let _ = write!(
        page,
        "<footer>Made by penstock {} with <code>penstock study {}</code>, seeds 1 to {}. The same command gives the same bytes.</footer>\n\
         </main></body></html>\n",
        env!("CARGO_PKG_VERSION"),
        escape(report.study),
        report.seeds
    );
    page
}

/// How the claims stand, and how far the tables are off.
fn head(page: &mut String, report: &StudyReport) {
    let _ = write!(
        page,
        "<p>{} A claim holds if it passes its check in at least 9 of 10 of the {} seeds.</p>",
        report.score(),
        report.seeds
    );
    if !report.remark.is_empty() {
        let _ = write!(page, "<p>{}</p>", escape(report.remark.trim()));
    }
    page.push_str("<p class=\"strip\">");
    for c in &report.claims {
        let _ = write!(
            page,
            "<a class=\"{}\" href=\"#{1}\" title=\"{1} {2}\">{1}</a>",
            class(c.verdict),
            escape(&c.id),
            c.verdict
        );
    }
    page.push_str("</p>\n");
}

/// A verdict's class.
fn class(verdict: &str) -> &'static str {
    match verdict {
        Judgement::HOLDS => "ok",
        Judgement::FAILS => "bad",
        Judgement::AS_PRINTED => "bad printed",
        _ => "open",
    }
}

fn drawings(page: &mut String, report: &StudyReport, figures: &[Figure]) {
    if figures.is_empty() {
        return;
    }
    let _ = writeln!(
        page,
        "<section><h2>Figures</h2><p class=\"note\">Lines are the median of {} seeds, the shade behind them is the range; dots are the \
         first seed's. Rings are what the document printed.</p><div class=\"charts\">",
        report.seeds
    );
    for figure in figures {
        let _ = write!(page, "<figure>{}", figure.chart.svg());
        if !figure.says.is_empty() {
            let _ = write!(page, "<figcaption>{}</figcaption>", escape(&figure.says));
        }
        page.push_str("</figure>\n");
    }
    page.push_str("</div></section>\n");
}

/// The numbers by tables of the document, or by experiments where it has none.
fn tables(page: &mut String, report: &StudyReport) {
    if report.numbers.is_empty() {
        return;
    }
    let name = |n: &NumberRow| if n.table.is_empty() { n.experiment.clone() } else { n.table.clone() };
    let mut names: Vec<String> = Vec::new();
    for n in &report.numbers {
        if !names.contains(&name(n)) {
            names.push(name(n));
        }
    }
    let _ = writeln!(
        page,
        "<section><h2>Tables</h2><p class=\"note\">Published, median and range of {} seeds. The bar shows the range and the median beside \
         the published number (the line in the middle); its ends are {:.0} % below and above.</p>",
        report.seeds,
        SPAN * 100.0
    );
    let medians = report.medians();
    let by_experiment = report.numbers.iter().all(|n| n.table.is_empty());
    if by_experiment {
        // One table, so that its columns stand below one another.
        let witness = report.numbers.iter().any(|n| n.witness.is_some());
        head_of_table(page, witness);
        for name in names {
            let rows = report.numbers.iter().filter(|n| n.experiment == name);
            let _ = writeln!(
                page,
                "<tr class=\"part\"><th colspan=\"{}\">{}</th></tr>",
                7 + u32::from(witness),
                escape(&name)
            );
            rows.for_each(|n| number(page, n, witness));
        }
        page.push_str("</table></div>\n</section>\n");
        return;
    }
    for table in names {
        let off = medians.iter().find(|m| m.0 == table).map_or(String::new(), |m| {
            format!("<span class=\"off\">median difference {:.1} %</span>", m.1 * 100.0)
        });
        let rows: Vec<&NumberRow> = report.numbers.iter().filter(|n| name(n) == table).collect();
        let witness = rows.iter().any(|n| n.witness.is_some());
        let _ = write!(page, "<h3>{}{off}</h3>", escape(&table));
        head_of_table(page, witness);
        for n in rows {
            number(page, n, witness);
        }
        page.push_str("</table></div>\n");
    }
    page.push_str("</section>\n");
}

fn head_of_table(page: &mut String, witness: bool) {
    let _ = writeln!(
        page,
        "<div class=\"wide\" tabindex=\"0\"><table><tr><th>quantity</th><th>unit</th><th class=\"n\">published</th><th class=\"n\">median</th>\
         <th class=\"n\">range</th><th class=\"n\">difference</th><th></th>{}</tr>",
        if witness { "<th class=\"n\">ns-2</th>" } else { "" }
    );
}

fn number(page: &mut String, n: &NumberRow, witness: bool) {
    let show = |x: Option<f64>| x.map_or("–".to_owned(), |x| format!("{x:.3}"));
    let difference = match n.difference().filter(|_| n.published != 0.0) {
        Some(d) => format!("{:+.1} %", d * 100.0),
        None => "–".to_owned(),
    };
    let why = n
        .excluded
        .as_ref()
        .map_or(String::new(), |why| format!("<div class=\"note\">not counted: {}</div>", escape(why)));
    let _ = write!(
        page,
        "<tr><td>{}{why}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{difference}</td><td>{}</td>",
        escape(&n.quantity),
        escape(&n.unit),
        show(Some(n.published)),
        show(n.measured),
        n.range.map_or(String::new(), |[a, b]| format!("{a:.3} .. {b:.3}")),
        bar(n),
    );
    if witness {
        let text = n.witness.map_or(String::new(), |[mean, a, b]| format!("{mean:.3} ({a:.3} .. {b:.3})"));
        let _ = write!(page, "<td class=\"n\">{text}</td>");
    }
    page.push_str("</tr>\n");
}

/// How far from the published number a bar reaches, as a share of it.
const SPAN: f64 = 0.25;

/// The median and the range over the seeds beside the published number.
fn bar(n: &NumberRow) -> String {
    let Some(measured) = n.measured.filter(|_| n.published != 0.0) else { return String::new() };
    let x = |value: f64| {
        let off = ((value / n.published - 1.0) / SPAN).clamp(-1.0, 1.0);
        60.0 + off * 56.0
    };
    let [low, high] = n.range.unwrap_or([measured; 2]);
    let beyond = (measured / n.published - 1.0).abs() > SPAN;
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 120 14\" role=\"img\" aria-label=\"beside the published number\"><path class=\"mid\" d=\"M60 1v12\"/>\
         <path class=\"range\" d=\"M{:.1} 7H{:.1}\"/><circle class=\"{}\" cx=\"{:.1}\" cy=\"7\" r=\"3\"/></svg>",
        x(low),
        x(high),
        if beyond { "beyond" } else { "median" },
        x(measured)
    )
}

fn claims(page: &mut String, report: &StudyReport) {
    if report.claims.is_empty() {
        return;
    }
    page.push_str("<section><h2>Claims</h2>\n");
    for c in &report.claims {
        claim(page, c);
    }
    page.push_str("</section>\n");
}

fn claim(page: &mut String, c: &ClaimRow) {
    let _ = write!(
        page,
        "<article id=\"{0}\"><h3><span class=\"id\">{0}</span> <span class=\"{1}\">{2}</span>",
        escape(&c.id),
        class(c.verdict),
        c.verdict
    );
    if c.verdict != Judgement::OPEN && c.verdict != Judgement::EXPLORED {
        let _ = write!(page, " <span class=\"seeds\">in {} of {} seeds</span>", c.holds_in, c.seeds);
    }
    if !c.fitted.is_empty() {
        let _ = write!(page, " <span class=\"fitted\">fitted: {}</span>", escape(&c.fitted.join(", ")));
    }
    let _ = write!(page, "</h3><p>{}</p><dl>", escape(&c.says));
    let rows = [
        ("checked by", &c.check),
        ("published", &c.published),
        ("measured", &c.measured),
        ("remark", &c.note),
        ("runs", &c.experiment),
    ];
    for (name, text) in rows.into_iter().filter(|r| !r.1.is_empty()) {
        let _ = write!(page, "<dt>{name}</dt><dd>{}</dd>", escape(text));
    }
    page.push_str("</dl></article>\n");
}

fn parameters(page: &mut String, study: &Study) {
    let parameters = study.parameters();
    if parameters.is_empty() {
        return;
    }
    page.push_str(
        "<section><h2>What the document does not say</h2><p class=\"note\">A claim that a value was fitted to holds by construction.</p>\
         <div class=\"wide\" tabindex=\"0\"><table><tr><th>free parameter</th><th>value</th><th>how it was found</th><th>fitted to</th></tr>\n",
    );
    for p in parameters {
        let fitted = if p.fitted.is_empty() { "none".to_owned() } else { p.fitted.join(", ") };
        let cells = [&p.name, &p.value, &p.found, &fitted].map(|t| format!("<td>{}</td>", escape(t)));
        let _ = writeln!(page, "<tr>{}</tr>", cells.concat());
    }
    page.push_str("</table></div></section>\n");
}

#[cfg(test)]
mod tests {
    use super::super::figures::chart;
    use super::*;
    use penstock_measure::number::Unit;

    #[test]
    fn a_page_has_what_the_report_has() {
        let mut figure = Figure::of("figure-4", &chart("Figure 4", Unit::Count, (0.0, 1.0), " s"));
        figure.says = "the picture is <lost>".to_owned();
        let mut report =
            StudyReport { study: "cbq-router", source: "A & B", seeds: 20, ..StudyReport::default() };
        report.claims.push(ClaimRow {
            id: "CR5".to_owned(),
            study: "cbq-router",
            experiment: "4.3-table-1-08".to_owned(),
            says: "a < b".to_owned(),
            check: "the column rises".to_owned(),
            verdict: Judgement::HOLDS,
            holds_in: 19,
            seeds: 20,
            fitted: vec!["what a frame is".to_owned()],
            published: "7976".to_owned(),
            measured: "8000".to_owned(),
            note: String::new(),
        });
        report.numbers.push(NumberRow {
            experiment: "4.3-table-1-08".to_owned(),
            quantity: "Flow4".to_owned(),
            unit: "kbit/s".to_owned(),
            published: 100.0,
            measured: Some(110.0),
            range: Some([90.0, 150.0]),
            witness: None,
            table: "table 1".to_owned(),
            excluded: None,
        });
        let page = page(Study::find("cbq-router").unwrap(), &report, &[figure]);
        for part in [
            "A &amp; B",
            "1 of 1 claims hold (1 of them were fitted to)",
            "<figcaption>the picture is &lt;lost&gt;</figcaption>",
            "in 19 of 20 seeds",
            "fitted: what a frame is",
            "<dt>checked by</dt><dd>the column rises</dd>",
            "90.000 .. 150.000",
            // The range ends at the edge, a quarter above the published number.
            "M37.6 7H116.0",
            "<td>ring of the router&#39;s card</td>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("http://") || page.matches("http://").all(|_| page.contains("www.w3.org")));
        assert!(!page.contains("<script") && !page.contains("src="));
    }
}
