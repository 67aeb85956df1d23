//! Targets as `-L` and `-S` write them.

use super::super::parse::TOS_NAMES;
use super::super::{Connmark, Edit, Family, Target, reject_names};
use super::Style;
use std::fmt::Write;

pub(super) fn show(t: &Target, style: Style) -> Option<String> {
    let (numeric, old) = (style.numeric, style.old);
    Some(match t {
        Target::Edit(Edit::Mark { value, mask }) => format!("MARK {}", operation(*value, *mask, old)),
        Target::Edit(Edit::Tos { value, mask }) => {
            match super::matches::tos_name(*value, *mask).filter(|_| !numeric) {
                Some(name) if old => format!("TOS set {name}"),
                // Word for word, blanks included.
                Some(name) => format!(" TOS set{name}"),
                None if old || numeric => format!("TOS set 0x{value:02x}/0x{mask:02x}"),
                None if *value == 0 => format!("TOS and 0x{:02x}", !mask),
                None if value == mask => format!("TOS or 0x{value:02x}"),
                None if *mask == 0 => format!("TOS xor 0x{value:02x}"),
                None => format!("TOS set 0x{value:02x}/0x{mask:02x}"),
            }
        }
        Target::Edit(Edit::Dscp(dscp)) => format!("DSCP set 0x{dscp:02x}"),
        Target::Edit(Edit::Classify(class)) => {
            format!("CLASSIFY set {:x}:{:x}", class.major(), class.minor())
        }
        Target::Edit(Edit::Connmark { op, value, ctmask, nfmask, shift }) => {
            let mut out = match op {
                Connmark::Set => format!("CONNMARK {}", operation(*value, *ctmask, old)),
                Connmark::Save if (*nfmask, *ctmask) == (u32::MAX, u32::MAX) => "CONNMARK save".to_owned(),
                Connmark::Save if nfmask == ctmask => format!("CONNMARK save mask 0x{nfmask:x}"),
                Connmark::Save => format!("CONNMARK save nfmask 0x{nfmask:x} ctmask ~0x{ctmask:x}"),
                Connmark::Restore if (*nfmask, *ctmask) == (u32::MAX, u32::MAX) => {
                    "CONNMARK restore".to_owned()
                }
                Connmark::Restore if nfmask == ctmask => format!("CONNMARK restore mask 0x{ctmask:x}"),
                Connmark::Restore => format!("CONNMARK restore ctmask 0x{ctmask:x} nfmask ~0x{nfmask:x}"),
            };
            if let Some(text) = shifted(*shift) {
                let _ = write!(out, " {text}");
            }
            out
        }
        Target::Edit(Edit::Ttl { op, value }) => {
            let name = if style.family == Family::Ip6 { "HL" } else { "TTL" };
            let what = match op {
                '-' => "decrement by",
                '+' => "increment by",
                _ => "set to",
            };
            format!("{name} {what} {value}")
        }
        Target::Edit(Edit::Ecn { ece: Some(false), cwr: Some(false), .. }) => "ECN TCP remove".to_owned(),
        Target::Edit(Edit::Ecn { ece, cwr, ect }) => {
            let mut out = String::from("ECN");
            for (name, flag) in [("ECE", ece), ("CWR", cwr)] {
                if let Some(on) = flag {
                    let _ = write!(out, " {name}={}", u8::from(*on));
                }
            }
            if let Some(ect) = ect {
                let _ = write!(out, " ECT codepoint={ect}");
            }
            out
        }
        Target::Reject(at) => format!("reject-with {}", reject_name(*at, style.family)),
        Target::Notrack(true) => "NOTRACK".to_owned(),
        Target::Notrack(false) => "CT notrack".to_owned(),
        Target::Log(plain) | Target::Plain(plain) | Target::Set(plain, _) | Target::Zone(plain, _)
            if numeric =>
        {
            plain.numeric.clone()
        }
        Target::Log(plain) | Target::Plain(plain) | Target::Set(plain, _) | Target::Zone(plain, _) => {
            plain.list.clone()
        }
        Target::None | Target::Verdict(_) | Target::Return | Target::Jump(_) | Target::Goto(_) => {
            return None;
        }
    })
}

fn reject_name(at: u8, family: Family) -> &'static str {
    reject_names(family).get(usize::from(at)).map_or("", |n| n.0)
}

fn shifted(shift: i8) -> Option<String> {
    match shift {
        0 => None,
        n if n > 0 => Some(format!("left-shift-mark {n}")),
        n => Some(format!("right-shift-mark {}", n.unsigned_abs())),
    }
}

/// What `(mark & !mask) ^ value` amounts to.
fn operation(value: u32, mask: u32, old: bool) -> String {
    if value == 0 {
        format!("and 0x{:x}", !mask)
    } else if value == mask {
        format!("or 0x{value:x}")
    } else if mask == 0 {
        format!("xor 0x{value:x}")
    } else if mask == u32::MAX && !old {
        format!("set 0x{value:x}")
    } else {
        format!("xset 0x{value:x}/0x{mask:x}")
    }
}

pub(super) fn save(out: &mut String, target: &Target, family: Family) {
    let _ = match target {
        Target::Edit(Edit::Mark { value, mask }) => write!(out, " --set-xmark 0x{value:x}/0x{mask:x}"),
        Target::Edit(Edit::Tos { value, mask }) => write!(out, " --set-tos 0x{value:02x}/0x{mask:02x}"),
        Target::Edit(Edit::Dscp(dscp)) => write!(out, " --set-dscp 0x{dscp:02x}"),
        Target::Edit(Edit::Classify(c)) => write!(out, " --set-class {:04x}:{:04x}", c.major(), c.minor()),
        Target::Edit(Edit::Connmark { op, value, ctmask, nfmask, shift }) => {
            let _ = match op {
                Connmark::Set => write!(out, " --set-xmark 0x{value:x}/0x{ctmask:x}"),
                Connmark::Save => write!(out, " --save-mark --nfmask 0x{nfmask:x} --ctmask 0x{ctmask:x}"),
                Connmark::Restore => {
                    write!(out, " --restore-mark --nfmask 0x{nfmask:x} --ctmask 0x{ctmask:x}")
                }
            };
            match shifted(*shift) {
                Some(text) => write!(out, " --{text}"),
                None => Ok(()),
            }
        }
        Target::Edit(Edit::Ttl { op, value }) => {
            let name = if family == Family::Ip6 { "hl" } else { "ttl" };
            let what = match op {
                '-' => "dec",
                '+' => "inc",
                _ => "set",
            };
            write!(out, " --{name}-{what} {value}")
        }
        Target::Edit(Edit::Ecn { ece: Some(false), cwr: Some(false), .. }) => {
            write!(out, " --ecn-tcp-remove")
        }
        Target::Edit(Edit::Ecn { ece, cwr, ect }) => {
            for (name, flag) in [("ece", ece), ("cwr", cwr)] {
                if let Some(on) = flag {
                    let _ = write!(out, " --ecn-tcp-{name} {}", u8::from(*on));
                }
            }
            match ect {
                Some(ect) => write!(out, " --ecn-ip-ect {ect}"),
                None => Ok(()),
            }
        }
        Target::Reject(at) => write!(out, " --reject-with {}", reject_name(*at, family)),
        Target::Notrack(false) => write!(out, " --notrack"),
        Target::Log(plain) | Target::Plain(plain) | Target::Set(plain, _) | Target::Zone(plain, _) => {
            write!(out, "{}", plain.save)
        }
        Target::Notrack(true)
        | Target::None
        | Target::Verdict(_)
        | Target::Return
        | Target::Jump(_)
        | Target::Goto(_) => Ok(()),
    };
}

/// Names of the type of service are the matches' business as well.
pub(super) fn named_tos(value: u8) -> Option<&'static str> {
    TOS_NAMES.iter().find(|(_, v)| *v == value).map(|(name, _)| *name)
}
