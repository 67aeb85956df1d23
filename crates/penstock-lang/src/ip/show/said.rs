//! What `ip -d link` and `bridge -d link` say of a bridge, of a bond and of their ports: names and values in the order of the tools.
//!
//! Follows: iproute2 6.1.0 `ip/iplink_bridge.c` `bridge_print_opt`, `ip/iplink_bridge_slave.c` `bridge_slave_print_opt`, `ip/iplink_bond.c`
//! `bond_print_opt`, `ip/iplink_bond_slave.c` `bond_slave_print_opt`, `bridge/link.c` `print_protinfo`.

use crate::show::Out;

/// A value as it is printed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SaidValue {
    /// A number.
    Number(i64),
    /// A word.
    Text(String),
    /// A word that is `null` in JSON.
    Null(&'static str),
    /// `on` or `off`; in JSON a truth value.
    OnOff(bool),
    /// What is left of a timer, in hundredths of a second.
    Timer(i64),
    /// Bits: `0`, else hexadecimal; in JSON a word too.
    Mask(u32),
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// Its name in text.
    pub word: &'static str,
    /// Its name in JSON; empty: it is not there.
    pub key: &'static str,
    /// Its value.
    pub value: SaidValue,
}

impl Said {
    /// One whose name is the same in JSON.
    pub fn new(word: &'static str, value: SaidValue) -> Said {
        Said { word, key: word, value }
    }
}

/// `NAME VALUE ` each.
pub(super) fn print(out: &mut Out, all: &[Said]) {
    for Said { word, key, value } in all {
        if key.is_empty() && out.is_json() {
            continue;
        }
        match value {
            SaidValue::Number(n) => out.num(key, n, format_args!("{word} {n} ")),
            SaidValue::Text(text) => out.string(key, text, format_args!("{word} {text} ")),
            SaidValue::Null(text) => out.null(key, format_args!("{word} {text} ")),
            SaidValue::OnOff(on) => {
                out.num(key, on, format_args!("{word} {} ", if *on { "on" } else { "off" }));
            }
            SaidValue::Timer(left) => {
                let (whole, part) = (left / 100, left % 100);
                out.num(key, format_args!("{whole}.{part:02}"), format_args!("{word} {whole:4}.{part:02} "));
            }
            SaidValue::Mask(bits) => {
                let text = if *bits == 0 { "0".to_owned() } else { format!("{bits:#x}") };
                out.string(key, &text, format_args!("{word} {text} "));
            }
        }
    }
}
