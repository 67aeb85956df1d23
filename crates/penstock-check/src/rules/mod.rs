//! The rules, one file a theme; each rule is one function and one entry of its file's table.

mod again;
mod aqm;
mod beyond;
mod bursts;
mod cake;
mod cause;
mod chains;
mod classify;
mod connections;
mod deeds;
mod direction;
mod empty;
mod errors;
mod fields;
mod forwarding;
mod gateways;
mod htb;
mod hygiene;
mod ingress;
mod kinds;
mod late;
mod links;
mod lives;
mod marks;
mod met;
mod nat;
mod netem;
mod never;
mod openwrt;
mod places;
mod policers;
mod queues;
mod rates;
mod removed;
mod routing;
mod service;
mod settings;
mod shadow;
mod six;
mod sizes;
mod sorted;
mod spelling;
mod timed;
mod typed;
mod u32;
mod units;
mod words;

use crate::finding::Rule;
pub(crate) use again::is_of_turns;
pub(crate) use errors::gives_up;
pub(crate) use settings::{meant as setting_meant, missed as setting_missed};

/// The tables, in the order of their codes.
const TABLES: [&[Rule]; 47] = [
    errors::RULES,
    removed::RULES,
    cause::RULES,
    typed::RULES,
    settings::RULES,
    spelling::RULES,
    rates::RULES,
    units::RULES,
    htb::RULES,
    bursts::RULES,
    service::RULES,
    queues::RULES,
    aqm::RULES,
    netem::RULES,
    sizes::RULES,
    classify::RULES,
    shadow::RULES,
    never::RULES,
    u32::RULES,
    marks::RULES,
    chains::RULES,
    lives::RULES,
    nat::RULES,
    direction::RULES,
    late::RULES,
    routing::RULES,
    ingress::RULES,
    policers::RULES,
    hygiene::RULES,
    cake::RULES,
    six::RULES,
    kinds::RULES,
    timed::RULES,
    deeds::RULES,
    kinds::LATER,
    connections::RULES,
    deeds::LATER,
    openwrt::RULES,
    places::RULES,
    beyond::RULES,
    places::LATER,
    links::RULES,
    forwarding::RULES,
    again::RULES,
    empty::RULES,
    links::LATER,
    nat::TO_LOOPBACK,
];

/// Every rule.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    TABLES.into_iter().flatten()
}

pub use met::met;

/// Text in lines of at most 120 characters, as long as it has blanks to break at. No line begins with what Markdown reads as a list or a
/// heading.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for word in text.split(' ') {
        let len = word.chars().count();
        let marks = word.starts_with(['-', '+', '*', '#', '>', '|'])
            || word.ends_with(['.', ')']) && word.starts_with(|c: char| c.is_ascii_digit());
        if at > 0 && at + 1 + len > 120 && !marks {
            out.push('\n');
            at = 0;
        } else if at > 0 {
            out.push(' ');
            at += 1;
        }
        out += word;
        at += len;
    }
    out
}

/// The page of a rule, as it lies in `docs/checks/`.
pub fn page(rule: &Rule) -> String {
    let level = rule.severity.name();
    let fix = crate::fix::class_of(rule.code).words();
    let threads: String = met(rule.code).map(|(at, what)| format!("- <{at}>: {what}\n")).collect();
    let threads = match threads.is_empty() {
        true => String::new(),
        false => format!("Who met it:\n\n{threads}\n"),
    };
    format!(
        "# {code}: {about}\n\n{level} · fix: {fix}\n\n{why}\n\n{threads}To keep it as it is: `# penstock: allow {code}` on the command's line or the line above.\n\n\
         [all checks](README.md) · [penstock check](../verbs/check.md)\n",
        code = rule.code,
        about = rule.about,
        why = wrapped(rule.why)
    )
}

/// The list of all rules, as it lies in `docs/checks/`.
pub fn index() -> String {
    use crate::fix::{Fix, class_of};
    let fix = |r: &Rule| match class_of(r.code) {
        Fix::Safe => "safe",
        Fix::Likely => "likely",
        Fix::None => "",
    };
    let line = |r: &Rule| {
        format!("| [{0}]({0}.md) | {1} | {2} | {3} |\n", r.code, r.severity.name(), fix(r), r.about)
    };
    let rows: String = all().map(line).collect();
    format!(
        "# What penstock check finds\n\n[penstock check](../verbs/check.md) says how to use it. `--fix` makes the fixes that are safe, `--fix --unsafe` the likely \
         ones too.\n\n\
         | code | level | fix | |\n|---|---|---|---|\n{rows}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_wrapped_and_never_into_a_list() {
        let text = format!("{} - {} 12. {}", "a".repeat(118), "b".repeat(116), "c".repeat(9));
        let lines: Vec<String> = wrapped(&text).lines().map(str::to_owned).collect();
        assert_eq!(
            lines,
            [format!("{} -", "a".repeat(118)), format!("{} 12.", "b".repeat(116)), "c".repeat(9)]
        );
        for rule in all() {
            assert!(page(rule).lines().all(|l| l.chars().count() <= 140), "{}", rule.code);
        }
    }

    #[test]
    fn codes_are_in_order_and_pages_are_those_of_the_table() {
        let codes: Vec<&str> = all().map(|r| r.code).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
        assert!(codes.len() >= 60, "{}", codes.len());
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks");
        let mut want: Vec<(String, String)> = all().map(|r| (format!("{}.md", r.code), page(r))).collect();
        want.push(("README.md".to_owned(), index()));
        if std::env::var_os("PENSTOCK_WRITE_DOCS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            want.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
        }
        for (name, text) in want {
            let there = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
            assert!(
                there == text,
                "docs/checks/{name} is old; PENSTOCK_WRITE_DOCS=1 cargo test -p penstock-check writes it"
            );
        }
    }
}
