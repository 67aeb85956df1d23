//! The command line of mtr, read as mtr reads it.
//!
//! Follows: mtr 0.95 `ui/mtr.c` `parse_arg`, `main`.

use super::words::{self, Field};
use super::{Form, Mtr};
use crate::app::options::{self, Known, o};
use crate::app::{Failure, Family};
use penstock_model::Span;

pub(crate) const KNOWN: &[Known] = &[
    o('h', "help", false),
    o('v', "version", false),
    o('4', "inet", false),
    o('6', "inet6", false),
    o('r', "report", false),
    o('w', "report-wide", false),
    o('x', "xml", false),
    o('l', "raw", false),
    o('C', "csv", false),
    o('j', "json", false),
    o('n', "no-dns", false),
    o('b', "show-ips", false),
    o('o', "order", true),
    o('i', "interval", true),
    o('c', "report-cycles", true),
    o('s', "psize", true),
    o('B', "bitpattern", true),
    o('Q', "tos", true),
    o('e', "mpls", false),
    o('a', "address", true),
    o('f', "first-ttl", true),
    o('m', "max-ttl", true),
    o('U', "max-unknown", true),
    o('u', "udp", false),
    o('T', "tcp", false),
    o('P', "port", true),
    o('Z', "timeout", true),
    o('G', "gracetime", true),
    o('M', "mark", true),
];

/// What mtr has beside these.
pub(crate) const NOT_HERE: &[options::NotHere] = &[
    ("-F --filename", "write the host on the command line"),
    ("-I --interface", "-a ADDRESS names the source"),
    ("-L --localport", "-P names the port that is sent to"),
    (
        "-p --split -t --curses --displaymode",
        "nobody looks at a screen here: write -r for a report, -l for each probe",
    ),
    ("-S --sctp", "there is no SCTP"),
    ("-y --ipinfo -z --aslookup", "nobody can be asked for the numbers of networks"),
];

/// The hops that there may be.
const MAX_HOST: i64 = 256;

fn fail<T>(text: &str) -> Result<T, Failure> {
    Err(Failure::new(format!("mtr: {text}\n"), 1))
}
/// `strtonum_or_err`.
fn number(value: &str) -> Result<i64, Failure> {
    match options::c_number(value.trim_start()) {
        Some(n) if i32::try_from(n).is_ok() => Ok(n),
        _ => fail(&format!("invalid argument: '{value}'")),
    }
}
/// `strtofloat_or_err`, of a time that must be more than none.
fn wait(value: &str) -> Result<Span, Failure> {
    match options::seconds(value.trim_start()) {
        Some(0) => fail("wait time must be positive"),
        Some(ns) => Ok(Span::from_ns(ns)),
        None if value.trim_start().starts_with('-') => fail("wait time must be positive"),
        None => fail(&format!("invalid argument: '{value}'")),
    }
}

impl Mtr {
    pub(crate) fn parse(args: &[&str]) -> Result<Mtr, Failure> {
        let (options, hosts) = options::parse_all("mtr", args, KNOWN, NOT_HERE, words::USAGE, 1)?;
        let mut mtr = Mtr::new();
        for (letter, value) in options {
            mtr.option(letter, value)?;
        }
        if mtr.form.is_none() {
            return fail("the interactive screen is not simulated: write -r for a report");
        }
        match hosts[..] {
            [] => "localhost".clone_into(&mut mtr.target),
            [host] => host.clone_into(&mut mtr.target),
            [first, ..] => {
                return fail(&format!(
                    "{} is not simulated: write one host in each command, as mtr {first}",
                    hosts.join(" ")
                ));
            }
        }
        Ok(mtr)
    }
    fn option(&mut self, letter: char, value: &str) -> Result<(), Failure> {
        match letter {
            'h' => return Err(Failure::new(words::USAGE, 0)),
            'v' => return Err(Failure::new("mtr 0.95\n", 0)),
            '4' => self.family = Family::Four,
            '6' => self.family = Family::Six,
            'r' => self.form = Some(Form::Report),
            'w' => (self.form, self.wide) = (Some(Form::Report), true),
            'x' => self.form = Some(Form::Xml),
            'l' => self.form = Some(Form::Raw),
            'C' => self.form = Some(Form::Csv),
            'j' => self.form = Some(Form::Json),
            'n' => self.numeric = true,
            'b' => self.show_ips = true,
            'o' => {
                if value.len() > 20 {
                    return fail(&format!("Too many fields: {value}"));
                }
                self.fields.clear();
                for key in value.chars() {
                    match Field::of(key) {
                        Some(field) => self.fields.push(field),
                        None if key == '_' => {}
                        None => return fail(&format!("Unknown field identifier: {key}")),
                    }
                }
            }
            'i' => self.wait = wait(value)?,
            'G' => self.grace = wait(value)?,
            'c' => self.count = number(value)?,
            's' => {
                self.size = number(value)?;
                if self.size < 0 {
                    return fail(&format!("-s {value} is not simulated: write a length"));
                }
            }
            'B' => {
                self.bitpattern = number(value)?;
                if !(0..=255).contains(&self.bitpattern) {
                    return fail(&format!("-B {value} is not simulated: write 0 to 255"));
                }
            }
            'Q' => self.tos = u8::try_from(number(value)?).unwrap_or(0),
            'a' => self.address = Some(value.to_owned()),
            'f' => self.first = number(value)?.min(self.last).max(1),
            'm' => {
                self.last = number(value)?.clamp(1, MAX_HOST - 1);
                self.first = self.first.min(self.last);
            }
            'U' => self.max_unknown = number(value)?.max(1),
            'u' if self.tcp => return fail("-u , -T and -S are mutually exclusive"),
            'T' if self.udp => return fail("-u , -T and -S are mutually exclusive"),
            'u' => self.udp = true,
            'T' => self.tcp = true,
            'P' => {
                let port = number(value)?;
                match u16::try_from(port) {
                    Ok(port) if port > 0 => self.port = port,
                    _ => return fail(&format!("Illegal port number: {port}")),
                }
            }
            'Z' => self.timeout = Span::from_secs(number(value)?.max(0)),
            'M' => {
                self.mark = match options::c_number(value.trim_start()).map(u32::try_from) {
                    Some(Ok(mark)) => mark,
                    _ => return fail(&format!("invalid argument: '{value}'")),
                }
            }
            // No message here has extensions of ICMP.
            _ => debug_assert!(letter == 'e', "-{letter} does nothing"),
        }
        Ok(())
    }
}
