//! `ip addrlabel`: the labels by which an address of IPv6 is chosen to speak with.
//!
//! Follows: iproute2 6.1.0 `ip/ipaddrlabel.c` `do_ipaddrlabel`, `ipaddrlabel_modify`, `ipaddrlabel_list`, `print_addrlabel`.

use super::words::{Parsed, Words, matches, number};
use super::{Command, Failure, Form, Net};
use crate::show::Out;
use penstock_model::Kernel;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `ip addrlabel add` and `del`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddrLabel {
    /// `prefix`, host bits kept.
    pub prefix: Net,
    /// `dev`.
    pub dev: Option<String>,
    /// `label`.
    pub label: u32,
    /// What is said of the words behind `dev`, where that is there.
    pub refused: Option<Failure>,
}

/// What is done with labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddrLabelRequest {
    /// `add`.
    Add(AddrLabel),
    /// `del`.
    Del(AddrLabel),
    /// `list`.
    List,
    /// `flush`.
    Flush,
}

/// A label as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelView {
    /// Prefix.
    pub prefix: Ipv6Addr,
    /// Its length, bits.
    pub len: u8,
    /// `dev`.
    pub dev: Option<String>,
    /// Label.
    pub label: u32,
}

const USAGE: &str = "Usage: ip addrlabel { add | del } prefix PREFIX [ dev DEV ] [ label LABEL ]\n       ip addrlabel [ list | flush | help ]\n";

impl Words<'_> {
    pub(super) fn addrlabel(&mut self, form: Form) -> Parsed<Command> {
        let say = |what| Ok(Command::AddrLabel(what, form));
        let Some(verb) = self.next() else { return say(AddrLabelRequest::List) };
        let is = |full: &str| matches(&verb, full);
        if is("list") || is("lst") || is("show") {
            return match self.next() {
                None => say(AddrLabelRequest::List),
                Some(_) => self.fail(1, "\"ip addrlabel show\" does not take any arguments.", "leave it out"),
            };
        }
        if is("add") {
            return say(AddrLabelRequest::Add(self.addrlabel_words(form)?));
        }
        if is("delete") {
            return say(AddrLabelRequest::Del(self.addrlabel_words(form)?));
        }
        if is("flush") {
            return match self.next() {
                None => say(AddrLabelRequest::Flush),
                Some(_) => {
                    self.fail(1, "\"ip addrlabel flush\" does not allow extra arguments", "leave it out")
                }
            };
        }
        if is("help") { self.usage(USAGE) } else { self.unknown_command(&verb, "addrlabel") }
    }
    fn addrlabel_words(&mut self, form: Form) -> Parsed<AddrLabel> {
        let nothing = Net { addr: IpAddr::V6(Ipv6Addr::UNSPECIFIED), len: 0 };
        let mut made = AddrLabel { prefix: nothing, dev: None, label: 0, refused: None };
        match self.addrlabel_rest(form, &mut made) {
            Err(refused) if made.dev.is_some() => made.refused = Some(refused),
            done => done?,
        }
        Ok(made)
    }
    fn addrlabel_rest(&mut self, form: Form, made: &mut AddrLabel) -> Parsed<()> {
        let (mut prefix, mut label) = (None, None);
        while let Some(word) = self.next() {
            match word.as_str() {
                "prefix" => {
                    let text = self.value()?;
                    prefix = Some(self.prefix(&text, form.family)?);
                }
                "dev" => made.dev = Some(self.value()?),
                "label" => {
                    let text = self.value()?;
                    match number(&text).filter(|n| *n != u32::MAX) {
                        Some(n) => label = Some(n),
                        None => return self.invalid(&text, "label is invalid\n"),
                    }
                }
                // Other words are read over.
                _ => {}
            }
        }
        let missing = |what: &str| format!("Not enough information: \"{what}\" argument is required.");
        let Some(prefix) = prefix else { return self.fail(1, missing("prefix"), "prefix 2001:db8::/32") };
        let Some(label) = label else { return self.fail(1, missing("label"), "label 99") };
        (made.prefix, made.label) = (prefix, label);
        Ok(())
    }
}

/// `inet_ntop`: of addresses that hold one of IPv4 the end stands in its form.
fn text(addr: Ipv6Addr) -> String {
    let s = addr.segments();
    if s[..6] == [0; 6] && s[6] != 0 {
        let o = addr.octets();
        return format!("::{}", Ipv4Addr::new(o[12], o[13], o[14], o[15]));
    }
    addr.to_string()
}

/// `ip addrlabel list`.
pub fn labels(all: &[LabelView], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for row in all {
        let (addr, len, label) = (text(row.prefix), row.len, row.label);
        out.open_object(None);
        out.string("address", &addr, format_args!("prefix {addr}"));
        out.num("prefixlen", len, format_args!("/{len} "));
        if let Some(dev) = &row.dev {
            out.string("ifname", dev, format_args!("dev {dev} "));
        }
        out.num("label", label, format_args!("label {label} "));
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}

impl AddrLabel {
    /// The prefix, where it is one of IPv6.
    pub fn six(&self) -> Option<(Ipv6Addr, u8)> {
        match self.prefix.addr {
            IpAddr::V6(addr) => Some((addr, self.prefix.len)),
            IpAddr::V4(_) => None,
        }
    }
}
