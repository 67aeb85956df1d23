//! Loops that wait for something: `until ss -ltn | grep -q :5201; do sleep 1; done`. What they wait for is unknown and never comes here, so they end after a
//! number of turns.

use crate::syntax::{Loop, Syntax};

/// Turns that a loop with a pause in it makes at most.
pub(crate) const TURNS: usize = 300;

/// What is written before `do` so that such loops end: where in the text, and what.
pub(crate) fn ends(text: &str, syntax: &Syntax) -> Vec<(usize, String)> {
    let waits = |l: &Loop| l.word != "for" && (pauses(text, l.at) || goes_on(text, &l.condition));
    let waiting = syntax.loops.iter().enumerate().filter(|(_, l)| waits(l));
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

/// Whether a loop goes on for as long as a program says: `while sleep 10`, `while inotifywait …`, `while :`. What the shell works out itself, and what is read,
/// comes to an end.
fn goes_on(text: &str, condition: &str) -> bool {
    let mut words = condition.split_whitespace().skip_while(|w| *w == "!" || w.contains('='));
    let Some(first) = words.next().map(|w| w.trim_end_matches(';')) else { return false };
    let own = text.contains(&format!("{first}()")) || text.contains(&format!("{first} ()"));
    let program = first == ":" || first.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    program
        && !own
        && !matches!(first, "read" | "test" | "let" | "getopts" | "shift" | "false" | "mapfile" | "expr")
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
        assert_eq!(found("while sleep 10; do tc qdisc show; done\n"), 1);
        assert_eq!(found("while inotifywait -e modify f; do tc qdisc show; done\n"), 1);
        assert_eq!(found("more() { :; }\nwhile more; do tc qdisc show; done\n"), 0);
        assert_eq!(found("while IFS=, read x; do echo $x; done < f\n"), 0);
        assert_eq!(found("while [ $i -lt 500 ]; do i=$((i+1)); done\n"), 0);
        assert_eq!(found("while read x; do echo $x; done < f\nsleep 1\n"), 0);
        assert_eq!(found("for i in 1 2; do sleep 1; done\n"), 0);
    }
}
