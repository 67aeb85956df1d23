//! `ip tuntap`: devices whose frames a program reads and writes.
//!
//! Follows: iproute2 6.1.0 `ip/iptuntap.c` `parse_args`, `print_tuntap`, `tun_print_opt`.
//! Differs: users and groups besides `root` and `nobody` are numbers.

use super::words::{Parsed, Words, is_ifname, matches};
use super::{Command, Form};
use crate::show::Out;
use penstock_model::Kernel;

/// What a device of `ip tuntap` is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TunSet {
    /// `mode tap`: frames of Ethernet; else `mode tun`: packets of IP.
    pub tap: bool,
    /// `pi`.
    pub pi: bool,
    /// `one_queue`, which says nothing since Linux 2.6.
    pub one_queue: bool,
    /// `vnet_hdr`.
    pub vnet_hdr: bool,
    /// `multi_queue`: 256 queues.
    pub multi_queue: bool,
    /// `user`: whose programs may open it.
    pub user: Option<u32>,
    /// `group`.
    pub group: Option<u32>,
}

/// `ip tuntap add` and `del`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunRequest {
    /// `add`, else `del`.
    pub add: bool,
    /// Its name; the kernel gives one where there is none.
    pub name: Option<String>,
    /// What it is.
    pub set: TunSet,
}

const USAGE: &str = "Usage: ip tuntap { add | del | show | list | lst | help } [ dev PHYS_DEV ]
       [ mode { tun | tap } ] [ user USER ] [ group GROUP ]
       [ one_queue ] [ pi ] [ vnet_hdr ] [ multi_queue ] [ name NAME ]

Where: USER  := { STRING | NUMBER }
       GROUP := { STRING | NUMBER }
";

/// `nobody`, and `nogroup`.
const NOBODY: u32 = 65_534;

impl Words<'_> {
    pub(super) fn tuntap(&mut self, form: Form) -> Parsed<Command> {
        let Some(verb) = self.next() else { return Ok(Command::TunShow(form)) };
        let is = |full: &str| matches(&verb, full);
        if is("add") || is("delete") {
            self.tun_words(is("add"))
        } else if is("show") || is("lst") || is("list") {
            Ok(Command::TunShow(form))
        } else if is("help") {
            self.usage(USAGE)
        } else {
            self.unknown_command(&verb, "tuntap")
        }
    }

    fn tun_words(&mut self, add: bool) -> Parsed<Command> {
        let mut request = TunRequest { add, name: None, set: TunSet::default() };
        let mut tap = None;
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            let set = &mut request.set;
            if is("mode") {
                let mode = self.value()?;
                let wanted = match mode.as_str() {
                    m if matches(m, "tun") => false,
                    m if matches(m, "tap") => true,
                    _ => return self.fail(255, format!("Unknown tunnel mode \"{mode}\""), "tun or tap"),
                };
                if tap.is_some_and(|tap| tap != wanted) {
                    return self.fail(255, "You managed to ask for more than one tunnel mode.", "");
                }
                tap = Some(wanted);
            } else if add && is("user") {
                set.user = Some(self.owner("user", "nobody")?);
            } else if add && is("group") {
                set.group = Some(self.owner("group", "nogroup")?);
            } else if is("pi") {
                set.pi = true;
            } else if is("one_queue") {
                set.one_queue = true;
            } else if is("vnet_hdr") {
                set.vnet_hdr = true;
            } else if is("multi_queue") {
                set.multi_queue = true;
            } else if is("dev") {
                let name = self.value()?;
                if !is_ifname(&name) {
                    return self.invalid(&name, "\"dev\" not a valid ifname");
                }
                request.name = Some(name);
            } else {
                let name = match word.as_str() {
                    word if matches(word, "name") => self.value()?,
                    word if matches(word, "help") => return self.usage(USAGE),
                    word => word.to_owned(),
                };
                if request.name.is_some() {
                    return self.duplicate("name", &name);
                }
                if !is_ifname(&name) {
                    return self.invalid(&name, "\"name\" not a valid ifname");
                }
                request.name = Some(name);
            }
        }
        match tap {
            Some(tap) => request.set.tap = tap,
            None => return self.fail(1, "You failed to specify a tunnel mode", "mode tun or mode tap"),
        }
        Ok(Command::Tun(Box::new(request)))
    }

    fn owner(&mut self, what: &str, nobody: &str) -> Parsed<u32> {
        let name = self.value()?;
        match name.parse() {
            Ok(number) => Ok(number),
            Err(_) if name == "root" => Ok(0),
            Err(_) if name == nobody => Ok(NOBODY),
            Err(_) => self.fail(255, format!("invalid {what} \"{name}\""), "a number, or root"),
        }
    }
}

/// `ip tuntap show`.
pub fn tuntaps(devices: &[(&str, &TunSet)], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for (name, set) in devices {
        out.open_object(None);
        out.string("ifname", name, format_args!("{name}:"));
        out.open_array("flags", "");
        let words = [
            (if set.tap { "tap" } else { "tun" }, true),
            ("pi", set.pi),
            ("one_queue", set.one_queue),
            ("vnet_hdr", set.vnet_hdr),
            ("multi_queue", set.multi_queue),
            ("persist", true),
        ];
        for (word, _) in words.into_iter().filter(|w| w.1) {
            out.item(format_args!("\"{word}\""), format_args!(" {word}"));
        }
        out.close_array();
        if let Some(user) = set.user {
            out.num("user", user, format_args!(" user {user}"));
        }
        if let Some(group) = set.group {
            out.num("group", group, format_args!(" group {group}"));
        }
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}

/// What `ip -d link` says of it.
pub(super) fn details(out: &mut Out, set: &TunSet) {
    let on = |on: bool| if on { "on" } else { "off" };
    out.open_object(Some("info_data"));
    let kind = if set.tap { "tap" } else { "tun" };
    out.string("type", kind, format_args!("type {kind} "));
    for (name, value) in [("pi", set.pi), ("vnet_hdr", set.vnet_hdr)] {
        out.json_bool(name, value);
        out.text_only(format_args!("{name} {} ", on(value)));
    }
    out.json_bool("multi_queue", set.multi_queue);
    if set.multi_queue {
        out.num("numqueues", 0, format_args!("multi_queue numqueues 0 "));
        out.num("numdisabled", 0, format_args!("numdisabled 0 "));
    }
    out.json_bool("persist", true);
    out.text_only(format_args!("persist on "));
    for (name, owner) in [("user", set.user), ("group", set.group)] {
        if let Some(owner) = owner {
            let who = if owner == 0 { "root".to_owned() } else { owner.to_string() };
            out.string(name, &who, format_args!("{name} {who} "));
        }
    }
    out.close_object();
}

#[cfg(test)]
mod tests {
    use super::super::{Command, parse};
    use super::TunSet;
    use crate::token;
    use penstock_model::Kernel;

    fn read(line: &str) -> Result<Command, (String, i32)> {
        let line = token::read(line, 1).unwrap();
        parse(&line.words, Kernel::V6_12).map_err(|f| (f.stderr, f.exit))
    }

    #[test]
    fn words_of_a_device() {
        let set = |line: &str| match read(line) {
            Ok(Command::Tun(request)) => (request.add, request.name.unwrap_or_default(), request.set),
            other => panic!("{line}: {other:?}"),
        };
        let tun = TunSet::default();
        assert_eq!(set("ip tuntap add dev tun0 mode tun"), (true, "tun0".to_owned(), tun.clone()));
        assert_eq!(set("ip tunt add t mode tun"), (true, "t".to_owned(), tun.clone()));
        assert_eq!(set("ip tuntap add mode tun"), (true, String::new(), tun));
        let tap = TunSet { tap: true, pi: true, user: Some(1000), group: Some(0), ..TunSet::default() };
        let line = "ip tuntap add name t mode tap pi user 1000 group root";
        assert_eq!(set(line), (true, "t".to_owned(), tap));
    }

    #[test]
    fn refusals_are_those_of_iproute2() {
        for (line, said, exit) in [
            ("ip tuntap add dev t", "You failed to specify a tunnel mode\n", 1),
            ("ip tuntap add t mode foo", "Unknown tunnel mode \"foo\"\n", 255),
            ("ip tuntap add t mode tun mode tap", "You managed to ask for more than one tunnel mode.\n", 255),
            ("ip tuntap add t mode tun user nobodyx", "invalid user \"nobodyx\"\n", 255),
            (
                "ip tuntap add dev a/b mode tun",
                "Error: argument \"a/b\" is wrong: \"dev\" not a valid ifname\n",
                255,
            ),
            (
                "ip tuntap add d mode tap tap",
                "Error: either \"name\" is duplicate, or \"tap\" is a garbage.\n",
                255,
            ),
            ("ip tuntap foo", "Command \"foo\" is unknown, try \"ip tuntap help\".\n", 255),
        ] {
            assert_eq!(read(line), Err((said.to_owned(), exit)), "{line}");
        }
    }
}
