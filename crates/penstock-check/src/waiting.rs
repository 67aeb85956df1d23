//! Loops that wait for something: `until ss -ltn | grep -q :5201; do sleep 1; done`. What they wait for is unknown and never comes here, so they end after a
//! number of turns.

use crate::syntax::Syntax;

/// Turns that a loop with a pause in it makes at most.
pub(crate) const TURNS: usize = 300;

/// What is written before `do` so that such loops end: where in the text, and what.
pub(crate) fn ends(text: &str, syntax: &Syntax) -> Vec<(usize, String)> {
    let waiting = syntax.loops.iter().enumerate().filter(|(_, l)| l.word != "for" && pauses(text, l.at));
    waiting
        .map(|(n, l)| {
            let over = match l.word {
                "until" => format!("$__turns{n} -gt {TURNS} -o $__was -eq 0"),
                _ => format!("$__turns{n} -le {TURNS} -a $__was -eq 0"),
            };
            (l.at, format!("__was=$?; __turns{n}=$((${{__turns{n}:-0}}+1)); [ {over} ]; "))
        })
        .collect()
}

/// What messages cite of a loop's condition is the script's own.
pub(crate) fn hide(syntax: &mut Syntax) {
    for condition in syntax.loops.iter_mut().map(|l| &mut l.condition) {
        if let Some(at) = condition.find("__was=$?") {
            condition.truncate(at);
            let kept = condition.trim_end().trim_end_matches(';').trim_end().len();
            condition.truncate(kept);
        }
    }
}

/// Whether the loop whose `do` stands here has a pause in it.
fn pauses(text: &str, at: usize) -> bool {
    let mut depth = 0;
    let mut found = false;
    let words = text[at.min(text.len())..]
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')'));
    for word in words {
        match word {
            "do" => depth += 1,
            "done" => depth -= 1,
            "sleep" | "usleep" => found = true,
            _ => {}
        }
        if depth == 0 && (word == "done" || !word.is_empty()) {
            // At its end; or what stands here is no `do`.
            return found && word == "done";
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_with_a_pause_are_found() {
        let found = |text: &str| ends(text, &Syntax::of(text)).len();
        assert_eq!(found("until ss -ltn | grep -q :1; do sleep 1; done\n"), 1);
        assert_eq!(
            found("while true\ndo\n  for i in 1 2; do echo $i; done\n  sleep 5\ndone\ntc qdisc show\n"),
            1
        );
        assert_eq!(found("while read x; do echo $x; done < f\nsleep 1\n"), 0);
        assert_eq!(found("for i in 1 2; do sleep 1; done\n"), 0);
    }
}
