//! `ip netconf`: what is set of devices' IPv4 and IPv6.
//!
//! Follows: iproute2 6.1.0 `ip/ipnetconf.c` `do_ipnetconf`, `do_show`, `print_netconf`.

use super::words::{Parsed, Words, matches};
use super::{Command, Form};
use crate::show::Out;
use penstock_model::Kernel;

/// The settings of a device, of `all` or of `default`, of one family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetconfView {
    /// Whether it is IPv6.
    pub six: bool,
    /// `all`, `default`, a device.
    pub name: String,
    /// `forwarding`.
    pub forwarding: bool,
    /// `rp_filter`, of IPv4.
    pub rp_filter: Option<u32>,
    /// `proxy_arp`, `proxy_ndp`.
    pub proxy_neigh: bool,
    /// `ignore_routes_with_linkdown`.
    pub ignores_linkdown: bool,
}

impl Words<'_> {
    pub(super) fn netconf(&mut self, form: Form) -> Parsed<Command> {
        let Some(verb) = self.next() else { return Ok(Command::NetconfShow(None, form)) };
        let is = |full: &str| matches(&verb, full);
        if is("show") || is("lst") || is("list") {
            let mut dev = None;
            while let Some(word) = self.next() {
                // Other words are read over.
                if word == "dev" {
                    dev = Some(self.value()?);
                }
            }
            return Ok(Command::NetconfShow(dev, form));
        }
        if is("help") {
            return self.usage("Usage: ip netconf show [ dev STRING ]\n");
        }
        self.unknown_command(&verb, "netconf")
    }
}

fn on_off(out: &mut Out, key: &'static str, on: bool) {
    let word = if on { "on" } else { "off" };
    out.num(key, on, format_args!("{key} {word} "));
}

/// `ip netconf show`; `single`: of one device and one family, which is never JSON.
pub fn netconf(all: &[NetconfView], single: bool, form: Form, kernel: Kernel) -> String {
    let form = Form { json: form.json && !single, ..form };
    let mut out = Out::new(&form.out(), kernel, true);
    for v in all {
        out.open_object(None);
        let family = if v.six { "inet6" } else { "inet" };
        out.string("family", family, format_args!("{family} "));
        out.string("interface", &v.name, format_args!("{} ", v.name));
        on_off(&mut out, "forwarding", v.forwarding);
        if let Some(filter) = v.rp_filter {
            match ["off", "strict", "loose"].get(filter as usize) {
                Some(word) => out.string("rp_filter", word, format_args!("rp_filter {word} ")),
                None => out.num("rp_filter", filter, format_args!("rp_filter {filter} ")),
            }
            on_off(&mut out, "mc_forwarding", false);
        }
        on_off(&mut out, "proxy_neigh", v.proxy_neigh);
        on_off(&mut out, "ignore_routes_with_linkdown", v.ignores_linkdown);
        out.close_object();
        out.text_only(format_args!("\n"));
    }
    out.finish()
}
