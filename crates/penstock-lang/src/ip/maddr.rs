//! `ip maddr`: the groups that devices are in.
//!
//! Follows: iproute2 6.1.0 `ip/ipmaddr.c` `do_multiaddr`, `multiaddr_list`, `multiaddr_modify`, `print_mlist`, `print_maddr`; `lib/ll_addr.c` `ll_addr_a2n`.

use super::words::{Family, Parsed, Words, is_ifname, matches};
use super::{Command, Form};
use crate::show::Out;
use penstock_model::Kernel;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The groups that one device is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupView<'a> {
    /// Index of the device.
    pub ifindex: u32,
    /// Its name.
    pub dev: &'a str,
    /// Hardware addresses it listens to: how many want them, and whether a command has said so.
    pub link: Vec<(&'a [u8], u32, bool)>,
    /// Groups of IPv4 and their users.
    pub four: Vec<(Ipv4Addr, u32)>,
    /// Groups of IPv6 and their users.
    pub six: Vec<(Ipv6Addr, u32)>,
}

const USAGE: &str =
    "Usage: ip maddr [ add | del ] MULTIADDR dev STRING\n       ip maddr show [ dev STRING ]\n";

impl Words<'_> {
    pub(super) fn maddr(&mut self, form: Form) -> Parsed<Command> {
        let Some(verb) = self.next() else { return Ok(Command::MaddrShow(None, form)) };
        let is = |full: &str| matches(&verb, full);
        if is("add") || is("delete") {
            return self.maddr_words(is("add"));
        }
        if is("list") || is("show") || is("lst") {
            let mut dev: Option<String> = None;
            while let Some(word) = self.next() {
                let name = if word == "dev" { self.value()? } else { word.clone() };
                if word != "dev" && matches(&word, "help") {
                    return self.usage(USAGE);
                }
                if dev.is_some() {
                    return self.duplicate("dev", &name);
                }
                dev = Some(name);
            }
            return Ok(Command::MaddrShow(dev, form));
        }
        if is("help") { self.usage(USAGE) } else { self.unknown_command(&verb, "maddr") }
    }
    fn maddr_words(&mut self, add: bool) -> Parsed<Command> {
        let (mut dev, mut mac) = (None, [0; 6]);
        while let Some(mut word) = self.next() {
            if word == "dev" {
                let name = self.value()?;
                if dev.is_some() {
                    return self.twice("dev", &name);
                }
                if !is_ifname(&name) {
                    return self.invalid(&name, "\"dev\" not a valid ifname");
                }
                dev = Some(name);
                continue;
            }
            if matches(&word, "address") {
                word = self.value()?;
            }
            if matches(&word, "help") {
                return self.usage(USAGE);
            }
            if mac[0] != 0 {
                return self.twice("address", &word);
            }
            self.at -= 1;
            let bytes = self.lladdr()?;
            mac = match <[u8; 6]>::try_from(bytes.as_slice()) {
                Ok(mac) => mac,
                Err(_) => {
                    let said = format!("Error: Invalid address length {} - must be 6 bytes", bytes.len());
                    return self.fail(1, said, "the hardware address of the group, 01:00:5e:00:00:05");
                }
            };
        }
        match dev {
            Some(dev) => Ok(Command::Maddr { add, mac, dev }),
            None => self.fail(255, "Not enough information: \"dev\" is required.", "e.g. dev eth0"),
        }
    }
}

/// One line of a device's.
enum Entry<'a> {
    Link(&'a [u8], u32, bool),
    Group(&'static str, String, u32),
}

fn show(entry: &Entry<'_>, out: &mut Out) {
    out.text_only(format_args!("\t"));
    out.open_object(None);
    let (users, by_hand) = match entry {
        Entry::Link(mac, users, by_hand) => {
            let mac = mac.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":");
            out.string("link", &mac, format_args!("link  {mac}"));
            (*users, *by_hand)
        }
        Entry::Group(family, addr, users) => {
            out.string("family", family, format_args!("{family:<5} "));
            out.string("address", addr, format_args!("{addr}"));
            (*users, false)
        }
    };
    if users != 1 {
        out.num("users", users, format_args!(" users {users}"));
    }
    if by_hand {
        out.string("features", "static", format_args!(" static"));
    }
    out.text_only(format_args!("\n"));
    out.close_object();
}

/// `ip maddr show`, of one device or of all.
pub fn groups(devices: &[GroupView<'_>], dev: Option<&str>, form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    let shows = |family| form.family == Family::Any || form.family == family;
    for device in devices.iter().filter(|d| dev.is_none_or(|name| name == d.dev)) {
        let link = device.link.iter().filter(|_| shows(Family::Link));
        let four = device.four.iter().filter(|_| shows(Family::Inet));
        let six = device.six.iter().filter(|_| shows(Family::Inet6));
        let entries: Vec<Entry<'_>> = link
            .map(|&(mac, users, by_hand)| Entry::Link(mac, users, by_hand))
            .chain(four.map(|&(addr, users)| Entry::Group("inet", addr.to_string(), users)))
            .chain(six.map(|&(addr, users)| Entry::Group("inet6", addr.to_string(), users)))
            .collect();
        // With `-o` each has its device before it.
        let step = if form.oneline { 1 } else { entries.len().max(1) };
        for some in entries.chunks(step) {
            let (ifindex, name) = (device.ifindex, device.dev);
            out.open_object(None);
            out.num("ifindex", ifindex, format_args!("{ifindex}:"));
            out.string("ifname", name, format_args!("\t{name}"));
            out.nl();
            out.open_array("maddr", "");
            some.iter().for_each(|entry| show(entry, &mut out));
            out.close_array();
            out.close_object();
        }
    }
    out.finish()
}
