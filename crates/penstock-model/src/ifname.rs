//! What a network device may be called.
//!
//! Follows: linux v6.12 `net/core/dev.c` `dev_valid_name`, `dev_prep_valid_name`, `__dev_alloc_name`, `lib/ctype.c`; iproute2 6.1.0 `lib/utils.c`
//! `check_ifname`.

use std::fmt;

/// Longest name, bytes (`IFNAMSIZ` less its end).
pub const MAX: usize = 15;

/// Why a device cannot have a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is empty.
    Empty,
    /// More than [`MAX`] bytes: so many.
    Long(usize),
    /// It holds a `/`, which would lead elsewhere in `/sys/class/net`.
    Slash,
    /// It holds whitespace.
    Space,
    /// It is `.` or `..`.
    Dots,
    /// It holds a `:`, which sets off the label of an address.
    Colon,
    /// It holds a byte 0xa0, which the kernel holds for a space.
    Blank,
    /// It holds a NUL, at which a name of C ends.
    Nul,
    /// It holds a `%`: the kernel takes the name as a pattern.
    Percent,
}

impl Fault {
    /// What `ip link add name NAME …` says of it. `eth%d` it does not refuse: the device gets the first number that is free.
    pub fn in_ips_words(self, name: &str) -> String {
        match self {
            Fault::Percent if pattern(name).is_some() => {
                format!(
                    "the device would be the first free of {}, {}, …",
                    name.replace("%d", "0"),
                    name.replace("%d", "1")
                )
            }
            Fault::Empty | Fault::Long(_) | Fault::Slash | Fault::Space => {
                format!("Error: argument \"{name}\" is wrong: \"name\" not a valid ifname")
            }
            Fault::Dots | Fault::Colon | Fault::Blank | Fault::Nul | Fault::Percent => {
                "RTNETLINK answers: Invalid argument".to_owned()
            }
        }
    }
    /// Whether ip refuses it, before the kernel is asked.
    pub fn is_ips(self) -> bool {
        matches!(self, Fault::Empty | Fault::Long(_) | Fault::Slash | Fault::Space)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Empty => f.write_str("it is empty"),
            Fault::Long(bytes) => write!(f, "it has {bytes} bytes, a name has at most {MAX}"),
            Fault::Slash => f.write_str("a name has no \"/\""),
            Fault::Space => f.write_str("a name has no whitespace"),
            Fault::Dots => f.write_str("\".\" and \"..\" are folders"),
            Fault::Colon => f.write_str("a name has no \":\" (that is the label of an address)"),
            Fault::Blank => f.write_str("the kernel holds its byte 0xa0 for a space"),
            Fault::Nul => f.write_str("a name has no NUL"),
            Fault::Percent => f.write_str("the kernel takes a name with \"%\" as a pattern"),
        }
    }
}

/// Whether a device can be called so.
///
/// # Errors
/// The first thing that is against it, in the order in which ip and then the kernel find it.
pub fn check(name: &str) -> Result<(), Fault> {
    let has = |byte: u8| name.bytes().any(|b| b == byte);
    match () {
        () if name.is_empty() => Err(Fault::Empty),
        () if name.len() > MAX => Err(Fault::Long(name.len())),
        () if has(b'/') => Err(Fault::Slash),
        () if name.bytes().any(is_space) => Err(Fault::Space),
        () if matches!(name, "." | "..") => Err(Fault::Dots),
        () if has(b':') => Err(Fault::Colon),
        () if has(0xa0) => Err(Fault::Blank),
        () if has(0) => Err(Fault::Nul),
        () if has(b'%') => Err(Fault::Percent),
        () => Ok(()),
    }
}

/// What stands before and behind the one `%d` of a pattern; `None` where the kernel refuses it.
pub fn pattern(name: &str) -> Option<(&str, &str)> {
    name.split_once("%d").filter(|(before, after)| !before.contains('%') && !after.contains('%'))
}

/// `isspace` of C in the locale that `ip` runs in.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

/// The device and its peer where `ip` would show a name so: `wan@if5`, `eth0.100@eth0`. `None` where there is no `@` within.
pub fn shown(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('@').filter(|(dev, peer)| !dev.is_empty() && !peer.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_linux() {
        for name in [
            "eth0", "enp3s0", "br-lan", "eth0.100", "wan@if5", "a", "...", "-x", "é", "日本", "\u{1}",
            "#\"'$",
        ] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        assert_eq!(check("a2345678901234b"), Ok(()));
        for (name, fault) in [
            ("", Fault::Empty),
            ("a2345678901234bc", Fault::Long(16)),
            ("日本日本日本", Fault::Long(18)),
            ("a/b", Fault::Slash),
            ("a b", Fault::Space),
            ("a\u{b}b", Fault::Space),
            (".", Fault::Dots),
            ("..", Fault::Dots),
            ("eth0:1", Fault::Colon),
            // Its second byte in UTF-8.
            ("à", Fault::Blank),
            ("a\u{a0}b", Fault::Blank),
            ("eth%d", Fault::Percent),
        ] {
            assert_eq!(check(name), Err(fault), "{name:?}");
        }
        assert_eq!(
            Fault::Slash.in_ips_words("a/b"),
            "Error: argument \"a/b\" is wrong: \"name\" not a valid ifname"
        );
    }

    #[test]
    fn a_pattern_has_one_number() {
        assert_eq!(pattern("eth%d"), Some(("eth", "")));
        for name in ["eth%s", "%d%d", "100%", "a%b%d"] {
            assert_eq!(pattern(name), None, "{name}");
        }
        assert_eq!(
            Fault::Percent.in_ips_words("eth%d"),
            "the device would be the first free of eth0, eth1, …"
        );
        assert_eq!(Fault::Percent.in_ips_words("100%"), "RTNETLINK answers: Invalid argument");
    }

    #[test]
    fn what_ip_shows_behind_an_at_is_the_peer() {
        assert_eq!(shown("wan@if5"), Some(("wan", "if5")));
        assert_eq!(shown("eth0.100@eth0"), Some(("eth0.100", "eth0")));
        assert_eq!(shown("a@b@if5"), Some(("a@b", "if5")));
        for name in ["wan", "@if5", "wan@", "@"] {
            assert_eq!(shown(name), None, "{name}");
        }
    }
}
