//! `ip token`: what ends the addresses that a device makes of routers' prefixes.
//!
//! Follows: iproute2 6.1.0 `ip/iptoken.c` `do_iptoken`, `iptoken_set`, `iptoken_list`, `print_token`.

use super::words::{Family, Parsed, Words, matches};
use super::{Command, Form};
use crate::show::Out;
use penstock_model::Kernel;
use std::net::{IpAddr, Ipv6Addr};

/// `ip token set` and `del`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenSet {
    /// Device.
    pub dev: String,
    /// The last eight bytes of it; `::` is none.
    pub token: Ipv6Addr,
}

const USAGE: &str = "Usage: ip token [ list | set | del | get ] [ TOKEN ] [ dev DEV ]\n";

impl Words<'_> {
    pub(super) fn token(&mut self, form: Form) -> Parsed<Command> {
        let Some(verb) = self.next() else { return Ok(Command::TokenShow(None, form)) };
        let is = |full: &str| matches(&verb, full);
        if is("list") || is("lst") || is("show") || is("get") {
            let mut dev = None;
            while let Some(word) = self.next() {
                if word == "dev" {
                    dev = Some(self.value()?);
                }
            }
            Ok(Command::TokenShow(dev, form))
        } else if is("set") || is("delete") {
            self.token_words(!is("set"))
        } else if is("help") {
            self.usage(USAGE)
        } else {
            self.unknown_command(&verb, "token")
        }
    }
    fn token_words(&mut self, delete: bool) -> Parsed<Command> {
        let (mut dev, mut token) = (None, None);
        while let Some(word) = self.next() {
            if word == "dev" {
                let name = self.value()?;
                dev.get_or_insert(name);
            } else if matches(&word, "help") {
                return self.usage(USAGE);
            } else if token.is_none()
                && let IpAddr::V6(addr) = self.prefix(&word, Family::Inet6)?.addr
            {
                token = Some(addr);
            }
        }
        let missing = |what: &str| format!("Not enough information: {what} is required.");
        let none = delete.then_some(Ipv6Addr::UNSPECIFIED);
        let Some(token) = none.or(token) else { return self.fail(1, missing("token"), "::1 dev eth0") };
        let Some(dev) = dev else {
            return self.fail(1, missing("\"dev\" argument"), "e.g. dev eth0");
        };
        Ok(Command::Token(TokenSet { dev, token }))
    }
}

/// `ip token list`: devices and their tokens.
pub fn tokens(devices: &[(&str, Ipv6Addr)], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for (name, token) in devices {
        out.open_object(None);
        out.string("token", &token.to_string(), format_args!("token {token} "));
        out.string("ifname", name, format_args!("dev {name}"));
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}
