//! The same sentence measured several times, as one: each number that varies becomes its median and range.

/// A piece of a sentence: a number with its decimals, or what stands between two.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Number(f64, usize),
    Words(String),
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut all = Vec::new();
    let mut words = String::new();
    let chars: Vec<char> = text.chars().collect();
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let mut at = 0;
    while at < chars.len() {
        // A sign belongs to a number only where a word could begin: not in "1-2".
        let signed = matches!(chars[at], '-' | '+')
            && digit(at + 1)
            && (at == 0 || matches!(chars[at - 1], ' ' | '(' | '['));
        // Digits within a name (`eth0`, `sch_1`) are part of it.
        let named = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
        if !signed && (!digit(at) || named) {
            words.push(chars[at]);
            at += 1;
            continue;
        }
        let from = at;
        at += usize::from(signed);
        while digit(at) {
            at += 1;
        }
        let mut decimals = 0;
        if chars.get(at) == Some(&'.') && digit(at + 1) {
            at += 1;
            while digit(at) {
                at += 1;
                decimals += 1;
            }
        }
        let number: String = chars[from..at].iter().collect();
        all.push(Piece::Words(std::mem::take(&mut words)));
        match number.parse() {
            Ok(value) => all.push(Piece::Number(value, decimals)),
            Err(_) => words = number,
        }
    }
    all.push(Piece::Words(words));
    all
}

/// The median of numbers: the mean of the two in the middle where there are as many on either side.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[n / 2]),
        n => Some(f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])),
    }
}

/// One sentence of several with the same words: `9.5 [9.4..9.6] Mbit/s`. Of sentences whose words differ the first, and that it is so.
pub(super) fn together(texts: &[&str]) -> String {
    let Some((first, rest)) = texts.split_first() else { return String::new() };
    if rest.iter().all(|t| t == first) {
        return (*first).to_owned();
    }
    let all: Vec<Vec<Piece>> = texts.iter().map(|t| pieces(t)).collect();
    let like = |a: &[Piece], b: &[Piece]| {
        a.len() == b.len()
            && a.iter().zip(b).all(|pair| match pair {
                (Piece::Words(a), Piece::Words(b)) => a == b,
                (Piece::Number(..), Piece::Number(..)) => true,
                _ => false,
            })
    };
    if !all.iter().all(|p| like(p, &all[0])) {
        return format!("{first} (first seed)");
    }
    let mut text = String::new();
    for (at, piece) in all[0].iter().enumerate() {
        match piece {
            Piece::Words(words) => text.push_str(words),
            Piece::Number(_, decimals) => {
                let values: Vec<f64> = all
                    .iter()
                    .filter_map(|p| match p[at] {
                        Piece::Number(value, _) => Some(value),
                        Piece::Words(_) => None,
                    })
                    .collect();
                let show = |x: f64| format!("{x:.decimals$}");
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                text.push_str(&show(median(&values).unwrap_or(f64::NAN)));
                if least < most {
                    text.push_str(&format!(" [{}..{}]", show(least), show(most)));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], expected: &str) {
        assert_eq!(together(texts), expected);
    }

    #[test]
    fn numbers_that_vary_become_median_and_range() {
        check(&["9.95, 3 Mbit/s", "9.60, 3 Mbit/s", "9.90, 3 Mbit/s"], "9.90 [9.60..9.95], 3 Mbit/s");
        check(&["a 1", "a 2"], "a 2 [1..2]");
        check(&["change -0.5 of 1:10", "change -0.3 of 1:10"], "change -0.4 [-0.5..-0.3] of 1:10");
        check(&["8.2-latency 2", "8.2-latency 2"], "8.2-latency 2");
        check(&["+1.1 %", "+1.3 %", "+1.2 %"], "1.2 [1.1..1.3] %");
        check(&["eth0 4", "eth1 4"], "eth0 4 (first seed)");
    }

    #[test]
    fn other_words_are_told_as_the_first_seed() {
        check(&["bucket [\"20:a\"]", "bucket [\"20:b\", \"20:c\"]"], "bucket [\"20:a\"] (first seed)");
        check(&["one"], "one");
        check(&[], "");
    }

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(median(&[]), None);
    }
}
