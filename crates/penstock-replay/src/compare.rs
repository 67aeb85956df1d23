//! Two answers side by side.

use serde_json::Value;

/// Where an answer differs from the recorded one, readably; empty where it does not.
///
/// Times of a blocked line are compared from its release: how far that is from the start depends on how long the
/// probe's programs took to start.
pub fn differences(recorded: &Value, answer: &Value) -> Vec<String> {
    let mut found = Vec::new();
    departures(recorded, answer, &mut found);
    for name in ["release", "rate", "packets", "late_ns", "drops", "left_in_queue"] {
        if recorded[name] != answer[name] {
            found.push(format!("{name}: recorded {} here {}", short(&recorded[name]), short(&answer[name])));
        }
    }
    if refusals(recorded) != refusals(answer) {
        found.push(format!(
            "refused: recorded {} here {}",
            short(&recorded["refused"]),
            short(&answer["refused"])
        ));
    }
    for name in ["qdiscs", "classes", "filters", "printed"] {
        // Left out where the kernel's dice decide it.
        if name == "classes" && recorded["classes"] == "by chance" {
            continue;
        }
        rows(name, &recorded[name], &answer[name], &mut found);
    }
    found
}

/// What was refused, without usage texts, which are our own.
fn refusals<'a>(answer: &'a Value) -> Vec<(&'a Value, &'a str)> {
    let rows = answer["refused"].as_array().into_iter().flatten();
    let before_usage = |text: &'a str| text.split("\nUsage:").next().unwrap_or_default();
    rows.map(|row| (&row["i"], before_usage(row["error"].as_str().unwrap_or_default()))).collect()
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 400 { text } else { text.chars().take(400).chain("…".chars()).collect() }
}

fn departures(recorded: &Value, answer: &Value, found: &mut Vec<String>) {
    type Row = (i64, i64, Option<i64>);
    let list = |v: &Value| -> Vec<Row> {
        let release = v["release_ns"].as_i64().unwrap_or(0);
        let row = |d: &Value| Some((d["i"].as_i64()?, d["t_ns"].as_i64()? - release, d["segment"].as_i64()));
        v["departures"].as_array().into_iter().flatten().filter_map(row).collect()
    };
    let (want, got) = (list(recorded), list(answer));
    let line = |d: Option<&Row>| match d {
        None => "nothing".to_owned(),
        Some((i, t, None)) => format!("#{i} at {t} ns"),
        Some((i, t, Some(segment))) => format!("#{i}, segment {segment}, at {t} ns"),
    };
    let differing: Vec<usize> =
        (0..want.len().max(got.len())).filter(|&n| want.get(n) != got.get(n)).collect();
    if let Some(&first) = differing.first() {
        found.push(format!(
            "departures: {} of {} differ; the first is number {first}: recorded {}, here {}",
            differing.len(),
            want.len(),
            line(want.get(first)),
            line(got.get(first)),
        ));
    }
}

fn rows(name: &str, recorded: &Value, answer: &Value, found: &mut Vec<String>) {
    let empty = Vec::new();
    let (want, got) = (recorded.as_array().unwrap_or(&empty), answer.as_array().unwrap_or(&empty));
    for n in 0..want.len().max(got.len()) {
        if want.get(n) != got.get(n) {
            let text = |v: Option<&Value>| v.map_or("nothing".to_owned(), Value::to_string);
            found.push(format!(
                "{name}[{n}]:\n      recorded {}\n      here     {}",
                text(want.get(n)),
                text(got.get(n))
            ));
        }
    }
}
