//! The study of DropTail and RED domains, cut short: every cell is measured, every claim has its judge, and the same runs give the same.

use penstock_model::Span;
use penstock_study::{Matrix, Study};

fn short(only: Option<&str>, seeds: u64) -> penstock_study::StudyReport {
    let duration = Some(Span::from_secs(6));
    let ask = Matrix {
        only,
        out: None,
        page: only.is_none(),
        seeds: Some(seeds),
        duration,
        aqm: None,
        jobs: None,
        progress: &|_, _| {},
    };
    let study = Study::find("aqm-domains").unwrap();
    study.run(&ask).unwrap_or_else(|d| panic!("{}", d[0]))
}

#[test]
fn every_cell_is_measured_and_every_claim_has_its_judge() {
    let report = short(None, 1);
    assert_eq!(report.numbers.len(), 110);
    assert!(report.numbers.iter().all(|n| n.measured.is_some() && n.witness.is_some()));
    assert_eq!(report.claims.len(), 26);
    let open: Vec<&str> =
        report.claims.iter().filter(|c| c.verdict == "open").map(|c| c.id.as_str()).collect();
    assert!(open.iter().all(|id| ["AD13", "AD26"].contains(id)), "{open:?}");
    for title in ["gentle RED", "adaptive RED", "One ECN cycle", "DT-DT-72: acknowledged"] {
        assert!(report.page.contains(title), "{title}");
    }
    assert!(report.remark.contains("Medians over 1 seeds"), "{}", report.remark);
    // A link of 1.5 Mbit/s is full within seconds.
    let end =
        |what: &str| report.numbers.iter().find(|n| n.quantity.contains(what)).unwrap().measured.unwrap();
    let sum = end("DT-DT 72: goodput end") + end("DT-DT 72: goodput inter");
    assert!((0.9..1.42).contains(&sum), "{sum}");
}

#[test]
fn the_same_seeds_give_the_same_figures() {
    let (a, b) = (short(Some("table-1"), 2), short(Some("table-1"), 2));
    assert_eq!(a.text(), b.text());
    assert_eq!(a.numbers.len(), 20);
    assert!(a.numbers.iter().all(|n| n.range.is_some_and(|[least, most]| least <= most)));
}
