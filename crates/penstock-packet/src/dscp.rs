//! The names of differentiated services code points.
//!
//! Follows: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE); IANA's registry.

/// Names and code points, the first name of a code point being the one it is shown by.
const NAMES: [(&str, u8); 26] = [
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
    ("BE", 0),
    ("DF", 0),
    ("VOICE-ADMIT", 44),
];

/// The code point, 0..=63, of a name in any case (`EF`, `AF11`…`AF43`, `CS0`…`CS7`, `LE`, `VA`, `BE`, `DF`), or of a number.
pub fn parse(text: &str) -> Option<u8> {
    let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|n| n.1);
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = hex.map_or_else(|| text.parse().ok(), |digits| u8::from_str_radix(digits, 16).ok());
    named.or(number).filter(|&dscp| dscp < 64)
}

/// A code point's name, where it has one.
pub fn name(dscp: u8) -> Option<&'static str> {
    NAMES.iter().find(|n| n.1 == dscp).map(|n| n.0)
}

/// All names, for advice.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|n| n.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let all = ["EF", "ef", "AF43", "CS7", "LE", "VA", "BE", "46", "0x2e", "64", "AF44", ""];
        let want = [
            Some(46),
            Some(46),
            Some(38),
            Some(56),
            Some(1),
            Some(44),
            Some(0),
            Some(46),
            Some(46),
            None,
            None,
            None,
        ];
        assert_eq!(all.map(parse), want);
        assert_eq!([0, 46, 2].map(name), [Some("CS0"), Some("EF"), None]);
        assert!(names().all(|n| parse(n).is_some()));
    }
}
