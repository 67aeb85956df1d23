//! What the figures mean for people: the scores.

use crate::number::Unit;
use crate::plot::escape;
use crate::record::Record;
use std::fmt::Write as _;

/// How good a word of a score is: for its colour, which never stands alone.
fn class(word: &str) -> &'static str {
    match word {
        "A+" | "A" | "best" | "high" | "good" | "first person" => "ok",
        "B" | "C" | "medium" | "low" | "acceptable" | "third person" => "fair",
        _ => "bad",
    }
}

/// Most probes and calls that are shown.
const MOST: usize = 12;

/// The section's inside; empty without scores.
pub(super) fn scores(r: &Record) -> String {
    let mut out = String::new();
    let scores = &r.scores;
    if scores.is_empty() {
        return out;
    }
    // The worst first: a run is as good as that.
    let mut latency: Vec<_> = scores.latency.iter().collect();
    latency.sort_by(|a, b| b.increase_ms.total_cmp(&a.increase_ms));
    let mut calls: Vec<_> = scores.calls.iter().collect();
    calls.sort_by(|a, b| a.r.total_cmp(&b.r));
    out.push_str("<div class=\"cards\">");
    let mut card = |head: &str, big: &str, kind: &str, small: &str| {
        let _ = write!(
            out,
            "<div class=\"card {kind}\"><span>{head}</span><b>{big}</b><small>{small}</small></div>"
        );
    };
    if let Some(worst) = latency.first() {
        let ms = |x: f64| Unit::Millisecond.show(x);
        card(
            "Bufferbloat",
            &worst.grade,
            class(&worst.grade),
            &format!("{} + {} under load", ms(worst.unloaded_ms), ms(worst.increase_ms)),
        );
        card("Responsiveness", &format!("{:.0}", worst.rpm), "", "round trips per minute (RPM) under load");
        card(
            "Games",
            &escape(&worst.game),
            class(&worst.game),
            &format!("p95 {} round trip under load", ms(worst.loaded_ms.p95)),
        );
        card(
            "Conferences",
            &escape(&worst.conference),
            class(&worst.conference),
            &format!("p95 {} one way under load", ms(worst.loaded_ms.p95 / 2.0)),
        );
    }
    if let Some(worst) = calls.first() {
        card(
            "Calls",
            &format!("MOS {:.2}", worst.mos),
            class(&worst.quality),
            &format!("{}: R {:.1}, {} quality", escape(&worst.flow), worst.r, escape(&worst.quality)),
        );
    }
    out.push_str("</div>\n");
    if !latency.is_empty() {
        out.push_str(
            "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>latency under load</th><th class=\"n\">without load</th><th class=\"n\">p50</th><th class=\"n\">p95</th>\
             <th class=\"n\">p99</th><th class=\"n\">max</th><th class=\"n\">increase</th><th>grade</th><th class=\"n\">RPM</th><th>games</th><th>conferences</th></tr></thead><tbody>",
        );
        for l in latency.iter().take(MOST) {
            let ms = |x: f64| Unit::Millisecond.show(x);
            let d = &l.loaded_ms;
            let _ = write!(
                out,
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"{}\">{}</td><td class=\"n\">{:.0}</td><td>{}</td><td>{}</td></tr>",
                escape(&l.probe),
                ms(l.unloaded_ms),
                ms(d.p50),
                ms(d.p95),
                ms(d.p99),
                ms(d.max),
                ms(l.increase_ms),
                class(&l.grade),
                escape(&l.grade),
                l.rpm,
                escape(&l.game),
                escape(&l.conference)
            );
        }
        out.push_str("</tbody></table></div>\n");
        super::more_of(&mut out, latency.len().saturating_sub(MOST));
    }
    if !calls.is_empty() {
        out.push_str(
            "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>call</th><th class=\"n\">R</th><th class=\"n\">MOS</th><th>quality</th><th class=\"n\">mouth to ear</th>\
             <th class=\"n\">lost or late</th></tr></thead><tbody>",
        );
        for c in calls.iter().take(MOST) {
            let _ = write!(
                out,
                "<tr><td>{}</td><td class=\"n\">{:.1}</td><td class=\"n\">{:.2}</td><td class=\"{}\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escape(&c.flow),
                c.r,
                c.mos,
                class(&c.quality),
                escape(&c.quality),
                Unit::Millisecond.show(c.delay_ms),
                Unit::Share.show(c.loss)
            );
        }
        out.push_str("</tbody></table></div>\n");
        super::more_of(&mut out, calls.len().saturating_sub(MOST));
    }
    out.push_str(
        "<p class=\"note\">Grade: mean round trip under load less that without, by the limits of DSLReports. RPM: draft-ietf-ippm-responsiveness. Games: Claypool and Claypool \
         2006. Conferences: ITU-T G.114, G.1010. Calls: the E-model, ITU-T G.107, as G.711 with concealment. Each is defined in docs/scores.md.</p>\n",
    );
    out
}
