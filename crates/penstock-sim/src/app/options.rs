//! `getopt_long`, as the modelled programs call it, and its messages.

use crate::app::Failure;

/// An option that a program knows.
pub(crate) struct Known {
    /// Its letter; a letter of its own for options that have only a long name.
    pub(crate) short: char,
    /// Its long name; empty for none.
    pub(crate) long: &'static str,
    /// Whether a value follows.
    pub(crate) value: bool,
}

/// `o(short, long, takes a value)`.
pub(crate) const fn o(short: char, long: &'static str, value: bool) -> Known {
    Known { short, long, value }
}

/// An option that the real program has and this one has not: how it is written, and what to do instead.
pub(crate) type NotHere = (&'static str, &'static str);

/// The same as [`parse`], of a program of whose options some are not simulated: each is refused by its name.
pub(crate) fn parse_all<'a>(
    program: &str,
    args: &[&'a str],
    known: &[Known],
    not_here: &[NotHere],
    usage: &str,
    status: i32,
) -> Result<Parsed<'a>, Failure> {
    parse(program, args, known, usage, status).map_err(|failure| {
        let said = failure.text.lines().next().unwrap_or_default();
        let long = said.split_once("unrecognized option '").and_then(|(_, rest)| rest.strip_suffix('\''));
        let short = said.split_once("invalid option -- '").and_then(|(_, rest)| rest.strip_suffix('\''));
        let written = long.map(str::to_owned).or_else(|| short.map(|letter| format!("-{letter}")));
        let is = |option: &&NotHere| written.as_deref().is_some_and(|w| option.0.split(' ').any(|o| o == w));
        match not_here.iter().find(is) {
            Some((_, why)) => {
                let written = written.as_deref().unwrap_or_default();
                Failure::new(format!("{program}: {written} is not simulated: {why}\n"), status)
            }
            None => failure,
        }
    })
}

/// Options in order with their values, then the other words.
pub(crate) type Parsed<'a> = (Vec<(char, &'a str)>, Vec<&'a str>);

/// Reads options and arguments in any order (GNU `getopt_long`): `-c10`, `-c 10`, `-ui1`, `--client=10`, `--client 10`, `--`.
/// A wrong one gives getopt's message, `usage`, and exit status `status`.
pub(crate) fn parse<'a>(
    program: &str,
    args: &[&'a str],
    known: &[Known],
    usage: &str,
    status: i32,
) -> Result<Parsed<'a>, Failure> {
    let fail = |message: String| Failure::new(format!("{program}: {message}\n{usage}"), status);
    let mut options = Vec::new();
    let mut rest = Vec::new();
    let mut i = 0;
    while i < args.len() {
        let arg = args[i];
        i += 1;
        if arg == "--" {
            rest.extend_from_slice(&args[i..]);
            break;
        }
        if let Some(long) = arg.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let exact = known.iter().find(|k| k.long == name);
            let mut near = known.iter().filter(|k| !k.long.is_empty() && k.long.starts_with(name));
            let k = match (exact, near.next(), near.next()) {
                (Some(k), ..) | (None, Some(k), None) => k,
                (None, Some(_), Some(_)) => return Err(fail(format!("option '--{name}' is ambiguous"))),
                (None, None, _) => return Err(fail(format!("unrecognized option '--{name}'"))),
            };
            match (k.value, value) {
                (false, Some(_)) => {
                    return Err(fail(format!("option '--{}' doesn't allow an argument", k.long)));
                }
                (false, None) => options.push((k.short, "")),
                (true, Some(value)) => options.push((k.short, value)),
                (true, None) => {
                    let Some(&value) = args.get(i) else {
                        return Err(fail(format!("option '--{}' requires an argument", k.long)));
                    };
                    options.push((k.short, value));
                    i += 1;
                }
            }
            continue;
        }
        let Some(letters) = arg.strip_prefix('-').filter(|l| !l.is_empty()) else {
            rest.push(arg);
            continue;
        };
        for (at, letter) in letters.char_indices() {
            let Some(k) = known.iter().find(|k| k.short == letter) else {
                return Err(fail(format!("invalid option -- '{letter}'")));
            };
            if !k.value {
                options.push((letter, ""));
                continue;
            }
            let value = &letters[at + letter.len_utf8()..];
            if !value.is_empty() {
                options.push((letter, value));
            } else if let Some(&value) = args.get(i) {
                options.push((letter, value));
                i += 1;
            } else {
                return Err(fail(format!("option requires an argument -- '{letter}'")));
            }
            break;
        }
    }
    Ok((options, rest))
}

/// A decimal number, or one in the ways of C (`0x10`, `020`).
pub(crate) fn c_number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let n = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        i64::from_str_radix(hex, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(&digits[1..], 8).ok()?
    } else {
        digits.parse().ok()?
    };
    Some(sign * n)
}

/// Seconds with a fraction, as nanoseconds; `None` for anything else, negative or too long.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() > 9 {
        return None;
    }
    let mut ns = whole.parse::<i64>().unwrap_or(0) * 1_000_000_000;
    let mut unit = 100_000_000;
    for b in fraction.bytes().take(9) {
        ns += i64::from(b - b'0') * unit;
        unit /= 10;
    }
    Some(ns)
}

/// A number with a suffix and its decimals, scaled: `1.5M` with 1000 is 1500000. `None` for nonsense.
pub(crate) fn scaled(text: &str, scales: &[(char, u64)]) -> Option<u64> {
    let text = text.trim();
    let last = text.chars().next_back()?;
    let (number, scale) = match scales.iter().find(|(c, _)| *c == last) {
        Some(&(_, scale)) => (&text[..text.len() - last.len_utf8()], scale),
        None => (text, 1),
    };
    // Nine decimals as an integer, so that no float decides a rate.
    let nano = seconds_like(number)?;
    u64::try_from(u128::from(nano) * u128::from(scale) / 1_000_000_000).ok()
}
fn seconds_like(number: &str) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) || whole.len() > 10 {
        return None;
    }
    let mut nano = whole.parse::<u64>().unwrap_or(0) * 1_000_000_000;
    let mut unit = 100_000_000;
    for b in fraction.bytes().take(9) {
        nano += u64::from(b - b'0') * unit;
        unit /= 10;
    }
    Some(nano)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[o('c', "client", true), o('u', "udp", false), o('i', "interval", true)];

    #[test]
    fn options_are_read_as_getopt_does() {
        let ok = |args: &[&'static str]| parse("x", args, KNOWN, "", 1).unwrap();
        assert_eq!(ok(&["-c", "h", "-ui1", "w"]), (vec![('c', "h"), ('u', ""), ('i', "1")], vec!["w"]));
        assert_eq!(ok(&["--client=h", "--int", "2", "--", "-u"]), (vec![('c', "h"), ('i', "2")], vec!["-u"]));
        let bad = |args: &[&'static str]| parse("x", args, KNOWN, "U", 1).unwrap_err().text;
        assert_eq!(bad(&["-q"]), "x: invalid option -- 'q'\nU");
        assert_eq!(bad(&["-c"]), "x: option requires an argument -- 'c'\nU");
        assert_eq!(bad(&["--nope"]), "x: unrecognized option '--nope'\nU");
        assert_eq!(bad(&["--udp=1"]), "x: option '--udp' doesn't allow an argument\nU");
    }

    #[test]
    fn numbers() {
        assert_eq!(c_number("0x10"), Some(16));
        assert_eq!(c_number("010"), Some(8));
        assert_eq!(c_number("-3"), Some(-3));
        assert_eq!(c_number("x"), None);
        assert_eq!(seconds("0.2"), Some(200_000_000));
        assert_eq!(seconds("10"), Some(10_000_000_000));
        assert_eq!(seconds("-1"), None);
        assert_eq!(scaled("1.5M", &[('M', 1_000_000)]), Some(1_500_000));
        assert_eq!(scaled("12", &[('M', 1_000_000)]), Some(12));
        assert_eq!(scaled("99999999999M", &[('M', 1_000_000)]), None);
        assert_eq!(scaled("k", &[('k', 1000)]), None);
    }
}
