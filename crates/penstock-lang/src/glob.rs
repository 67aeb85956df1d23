//! Patterns of names, as `fnmatch` takes them: `*`, `?`, `[a-z]`, `[!a]` and `\\`.

/// Whether a text fits a pattern. The time it takes grows with the product of both lengths at most.
pub fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Behind the last star, and what it has taken up to.
    let mut back: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&'*') {
            p += 1;
            back = Some((p, t));
            continue;
        }
        match (one(&pattern[p..], text.get(t)), t < text.len()) {
            (None, false) if p == pattern.len() => return true,
            (Some(len), _) => (p, t) = (p + len, t + 1),
            _ => match &mut back {
                Some((behind, taken)) if *taken < text.len() => {
                    *taken += 1;
                    (p, t) = (*behind, *taken);
                }
                _ => return false,
            },
        }
    }
}

/// How much of a pattern one character takes; `None`: it does not fit.
fn one(pattern: &[char], text: Option<&char>) -> Option<usize> {
    let text = *text?;
    match *pattern.first()? {
        '?' => Some(1),
        '[' => match bracket(pattern, text) {
            Some((len, fits)) => fits.then_some(len),
            None => (text == '[').then_some(1),
        },
        '\\' if pattern.len() > 1 => (pattern[1] == text).then_some(2),
        c => (c == text).then_some(1),
    }
}

/// A set in brackets: its length, and whether the character is in it. `None`: it has no end.
fn bracket(pattern: &[char], text: char) -> Option<(usize, bool)> {
    let not = matches!(pattern.get(1), Some('!' | '^'));
    let first = 1 + usize::from(not);
    let mut at = first;
    let mut fits = false;
    loop {
        let c = *pattern.get(at)?;
        if c == ']' && at > first {
            return Some((at + 1, fits != not));
        }
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some('-'), Some(&to)) if to != ']' => {
                fits |= (c..=to).contains(&text);
                at += 3;
            }
            _ => {
                fits |= c == text;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_as_fnmatch_says() {
        for (pattern, text, yes) in [
            ("", "", true),
            ("*", "", true),
            ("tcp*", "tcpoutsegs", true),
            ("*retrans*", "tcpretranssegs", true),
            ("*retrans", "tcpretranssegs", false),
            ("eth?", "eth0", true),
            ("eth?", "eth", false),
            ("eth[0-2]", "eth1", true),
            ("eth[!0-2]", "eth1", false),
            ("eth[", "eth[", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("*a*b", "aab", true),
        ] {
            assert_eq!(fits(pattern, text), yes, "{pattern} {text}");
        }
        let long = "a".repeat(2000);
        assert!(!fits(&"*a".repeat(500).replace("*a*a", "*a*b"), &long), "many stars end");
    }
}
