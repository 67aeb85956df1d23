//! Handles of qdiscs and ids of classes: `1:`, `1:10`.
//!
//! Follows: iproute2 6.1 `tc/tc_util.c` `get_qdisc_handle`, `get_tc_classid`, `print_tc_classid`.

use std::fmt;

/// A 32-bit handle: major (qdisc) in the upper half, minor (class) in the lower; both written in hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Handle(pub u32);

impl Handle {
    /// No handle: `0:0`, written `none` as a classid.
    pub const UNSPEC: Handle = Handle(0);
    /// The device itself as a parent: `root`.
    pub const ROOT: Handle = Handle(0xffff_ffff);
    /// The ingress hook as a parent.
    pub const INGRESS: Handle = Handle(0xffff_fff1);

    /// From the two halves.
    pub const fn new(major: u16, minor: u16) -> Handle {
        Handle((major as u32) << 16 | minor as u32)
    }
    /// The qdisc's half, as a number 0..=0xffff.
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }
    /// The class's half.
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }
    /// The qdisc this id belongs to: `1:10` → `1:`.
    pub const fn qdisc(self) -> Handle {
        Handle(self.0 & 0xffff_0000)
    }

    /// Reads a qdisc handle: `1:`, `1`, `ffff:`, `none`.
    ///
    /// # Errors
    /// The text, when it is not a handle.
    pub fn parse_qdisc(text: &str) -> Result<Handle, String> {
        let bad = || text.to_owned();
        if text == "none" {
            return Ok(Handle::UNSPEC);
        }
        let major = text.strip_suffix(':').unwrap_or(text);
        hex16(major).map(|m| Handle::new(m, 0)).ok_or_else(bad)
    }

    /// Reads a classid: `1:10`, `:10`, `1:`, `root`, `none`, or a bare 32-bit hex number below 0x10000's class.
    ///
    /// # Errors
    /// The text, when it is not a classid.
    pub fn parse_classid(text: &str) -> Result<Handle, String> {
        let bad = || text.to_owned();
        match text {
            "root" => return Ok(Handle::ROOT),
            "none" => return Ok(Handle::UNSPEC),
            _ => {}
        }
        match text.split_once(':') {
            Some((major, minor)) => {
                let major = if major.is_empty() { 0 } else { hex16(major).ok_or_else(bad)? };
                let minor = if minor.is_empty() { 0 } else { hex16(minor).ok_or_else(bad)? };
                Ok(Handle::new(major, minor))
            }
            None => {
                let digits = text.strip_prefix("0x").unwrap_or(text);
                let ok = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
                if !ok {
                    return Err(bad());
                }
                u32::from_str_radix(digits, 16).map(Handle).map_err(|_| bad())
            }
        }
    }
}

fn hex16(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok().filter(|&v| v <= 0xffff).map(|v| v as u16)
}

impl fmt::Display for Handle {
    /// As `print_tc_classid`: `root`, `none`, `1:`, `:10`, `1:10`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.major(), self.minor()) {
            (Handle::ROOT, ..) => write!(f, "root"),
            (Handle::UNSPEC, ..) => write!(f, "none"),
            (_, 0, minor) => write!(f, ":{minor:x}"),
            (_, major, 0) => write!(f, "{major:x}:"),
            (_, major, minor) => write!(f, "{major:x}:{minor:x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        let check = |text: &str, value: u32, shown: &str| {
            let h = Handle::parse_classid(text).unwrap();
            assert_eq!((h.0, h.to_string().as_str()), (value, shown), "{text}");
        };
        check("1:10", 0x0001_0010, "1:10");
        check("001:a", 0x0001_000a, "1:a");
        check("1:", 0x0001_0000, "1:");
        check(":5", 5, ":5");
        check("root", 0xffff_ffff, "root");
        check("none", 0, "none");
        check("5:0", 0x0005_0000, "5:");
        check("ffff:fff1", 0xffff_fff1, "ffff:fff1");
        assert!(Handle::parse_classid("1:1:1").is_err());
        assert!(Handle::parse_classid("1:12345").is_err());
        assert!(Handle::parse_classid("x").is_err());
        assert_eq!(Handle::parse_qdisc("20:"), Ok(Handle(0x0020_0000)));
        assert_eq!(Handle::parse_qdisc("20"), Ok(Handle(0x0020_0000)));
        assert!(Handle::parse_qdisc("1:1").is_err());
        assert!(Handle::parse_qdisc(":").is_err());
    }
}
