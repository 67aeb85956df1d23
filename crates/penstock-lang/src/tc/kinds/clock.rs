//! The clocks etf and taprio name.
//!
//! Follows: iproute2 6.1.0 `tc/q_etf.c`, `tc/q_taprio.c` `get_clockid`, `get_clock_name`.

/// Name and number, as tc lists them.
const CLOCKS: [(&str, i64); 4] = [("REALTIME", 0), ("TAI", 11), ("BOOTTIME", 7), ("MONOTONIC", 1)];

/// `get_clockid`: a name in any case. Where `CLOCK_` is in it anywhere, its first six characters are not looked at.
pub fn parse(text: &str) -> Option<i64> {
    let prefixed = text.to_ascii_uppercase().contains("CLOCK_");
    let name = if prefixed { text.get(6..)? } else { text };
    CLOCKS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, id)| *id)
}

/// `get_clock_name`.
pub fn name(id: i64) -> &'static str {
    CLOCKS.iter().find(|(_, known)| *known == id).map_or("invalid", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_by_their_names() {
        assert_eq!(parse("CLOCK_TAI").map(name), Some("TAI"));
        assert_eq!(parse("clock_monotonic"), Some(1));
        assert_eq!(parse("Boottime"), Some(7));
        assert_eq!(parse("CLOCK_"), None);
        assert_eq!(parse("11"), None);
        assert_eq!(name(-1), "invalid");
    }
}
