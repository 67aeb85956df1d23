//! Times as nft writes them: `1d2h3m4s500ms`.

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// How many characters of a time stand at the head, where it has a unit (`timestring` of `scanner.l`).
pub(super) fn len(chars: &[char]) -> Option<usize> {
    let (mut at, mut least) = (0, 0);
    loop {
        let digits = chars[at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let unit: String =
            chars[at + digits..].iter().take_while(|c| c.is_ascii_alphabetic()).take(2).collect();
        let found = (digits > 0)
            .then(|| UNITS.iter().enumerate().skip(least).rev().find(|(_, u)| unit.starts_with(u.0)))
            .flatten();
        let Some((place, unit)) = found else { break };
        at += digits + unit.0.len();
        least = place + 1;
    }
    let follows = chars.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    (at > 0 && !follows).then_some(at)
}

/// Milliseconds of a time.
pub(super) fn read(text: &str) -> Option<u64> {
    let chars: Vec<char> = text.chars().collect();
    if len(&chars)? != chars.len() {
        return None;
    }
    let (mut rest, mut sum) = (text, 0u64);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = rest.split_at(digits);
        let unit = UNITS.iter().rev().find(|u| behind.starts_with(u.0))?;
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(unit.1)?)?;
        rest = &behind[unit.0.len()..];
    }
    Some(sum)
}

/// Written back (`time_print`).
pub fn text(ms: u64) -> String {
    let mut out = String::new();
    let mut left = ms;
    for (unit, size) in UNITS {
        if left >= size {
            out.push_str(&format!("{}{unit}", left / size));
            left %= size;
        }
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_back() {
        for (said, ms) in [("1d2h3m4s", 93_784_000), ("4s556ms", 4556), ("5m", 300_000), ("500ms", 500)] {
            assert_eq!(read(said), Some(ms));
            assert_eq!(text(ms), said);
        }
        assert_eq!((read("90"), text(90_000).as_str()), (None, "1m30s"));
        assert_eq!((read("4s3m"), read("5x"), read("s")), (None, None, None));
        let cut = |t: &str| len(&t.chars().collect::<Vec<_>>());
        assert_eq!((cut("10s;"), cut("10"), cut("10mb"), cut("5m }")), (Some(3), None, None, Some(2)));
    }
}
