//! Words to a command.
//!
//! Follows: ipset 7.17 `lib/ipset.c` `ipset_parser`, `call_parser`, `check_mandatory`, `check_allowed`, `build_argv`.

use super::kind::{Arg, opt};
use super::value::number;
use super::{Attributes, Command, Env, Failure, Kind, Verb};
use crate::iptables::Family;

/// How many words of a command follow its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    None,
    Optional,
    Two,
}

/// Commands in the order their beginnings are tried.
const COMMANDS: &[(Verb, &[&str], Takes)] = &[
    (Verb::Create, &["create", "new", "-N"], Takes::Two),
    (Verb::Add, &["add", "-A"], Takes::Two),
    (Verb::Del, &["del", "-D"], Takes::Two),
    (Verb::Test, &["test", "-T"], Takes::Two),
    (Verb::Destroy, &["destroy", "x", "-X"], Takes::Optional),
    (Verb::List, &["list", "-L"], Takes::Optional),
    (Verb::Save, &["save", "-S"], Takes::Optional),
    (Verb::Restore, &["restore", "-R"], Takes::None),
    (Verb::Flush, &["flush", "-F"], Takes::Optional),
    (Verb::Rename, &["rename", "e", "-E"], Takes::Two),
    (Verb::Swap, &["swap", "w", "-W"], Takes::Two),
    (Verb::Help, &["help", "-h", "-H"], Takes::Optional),
    (Verb::Version, &["version", "-v", "-V"], Takes::None),
    (Verb::Quit, &["quit"], Takes::None),
];

/// Options of any command: letter, word, whether a value follows. In the order they are taken out of the words.
const OPTIONS: &[(&str, &str, bool)] = &[
    ("-o", "-output", true),
    ("-s", "-sorted", false),
    ("-q", "-quiet", false),
    ("-r", "-resolve", false),
    ("-!", "-exist", false),
    ("-n", "-name", false),
    ("-t", "-terse", false),
    ("-f", "-file", true),
];

/// What is known while a line is read.
pub(super) struct Reader {
    /// Number of the line of a restored file; 0: none.
    pub line: u32,
    /// The family of the set.
    pub family: Option<Family>,
}

impl Reader {
    pub(super) fn report(&self, message: &str) -> Failure {
        Failure::report(self.line, message)
    }
    pub(super) fn check_name(&self, name: &str) -> Result<(), Failure> {
        match name.len() > 31 {
            true => {
                let words = format!("Syntax error: setname '{name}' is longer than 31 characters");
                Err(self.report(&words))
            }
            false => Ok(()),
        }
    }
}

/// What is there under a set's name: its type and family.
pub type Known<'a> = dyn Fn(&str) -> Option<(&'static Kind, Option<Family>)> + 'a;

type Words<'a> = Vec<(usize, &'a str)>;

/// Takes the options out of the words.
fn options(words: &mut Words<'_>, line: u32) -> Result<Env, Failure> {
    let mut env = Env::default();
    for (letter, long, takes) in OPTIONS {
        let mut i = 0;
        while i < words.len() {
            let text = words[i].1;
            let text = if text.starts_with("--") { &text[1..] } else { text };
            if text != *letter && text != *long {
                i += 1;
                continue;
            }
            let (place, _) = words.remove(i);
            let value = match takes {
                false => "",
                true if i < words.len() => words.remove(i).1,
                true => {
                    let words = format!("Missing mandatory argument to option {letter}");
                    return Err(Failure::parameter(&words).at(place));
                }
            };
            match *letter {
                "-o" => match value {
                    "plain" => (env.as_commands, env.xml) = (Some(false), false),
                    "save" => (env.as_commands, env.xml) = (Some(true), false),
                    "xml" => (env.as_commands, env.xml) = (Some(false), true),
                    _ => {
                        let words = format!("Syntax error: unknown output mode '{value}'");
                        return Err(Failure::report(line, &words).at(place).advise("plain, save or xml"));
                    }
                },
                "-s" => env.sorted = true,
                "-q" => env.quiet = true,
                "-!" => env.exist = true,
                "-n" => env.names = true,
                "-t" => env.terse = true,
                "-f" => env.file = Some(value.to_owned()),
                // There are no names to show.
                _ => {}
            }
        }
    }
    Ok(env)
}

/// `ipset_match_cmd`: any beginning.
fn command(word: &str) -> Option<&'static (Verb, &'static [&'static str], Takes)> {
    let text = word.strip_prefix("--").unwrap_or(word);
    if text.is_empty() || word == "-" {
        return None;
    }
    COMMANDS.iter().find(|(_, names, _)| names.iter().any(|n| n.starts_with(text)))
}

/// Reads a command's words, the program's name first; `line` is its number in a restored file, or 0.
///
/// # Errors
/// What ipset says of the line.
pub fn parse(texts: &[&str], line: u32, known: &Known<'_>) -> Result<Command, Failure> {
    let mut words: Words<'_> = texts.iter().copied().enumerate().skip(1).collect();
    let env = options(&mut words, line)?;
    let Some(&(place, word)) = words.first() else { return Err(Failure::parameter("No command specified.")) };
    let Some(&(verb, names, takes)) = command(word) else {
        if word == "-" {
            let help = "write the commands to ipset restore";
            return Err(Failure::other("-: not simulated").at(place).advise(help));
        }
        let words = format!("No command specified: unknown argument {word}");
        let help = "create, add, del, test, destroy, list, save, restore, flush, rename, swap, version";
        return Err(Failure::parameter(&words).at(place).advise(help));
    };
    let name = names[0];
    if line != 0 && matches!(verb, Verb::Restore | Verb::Version | Verb::Help) {
        return Err(Failure::parameter(&format!("Command `{name}' is invalid in restore mode.")));
    }
    words.remove(0);
    let mut next = || (!words.is_empty()).then(|| words.remove(0));
    let (mut first, mut second) = (None, None);
    if takes != Takes::None {
        first = next();
    }
    if takes == Takes::Two {
        if first.is_none() {
            let words = format!("Missing mandatory argument to command {name}");
            return Err(Failure::parameter(&words).at(place));
        }
        second = next();
        if second.is_none() {
            let words = format!("Missing second mandatory argument to command {name}");
            return Err(Failure::parameter(&words).at(place));
        }
    }
    let mut out = Command {
        verb,
        set: first.map(|(_, text)| text.to_owned()),
        other: None,
        kind: None,
        family: None,
        attributes: Attributes::default(),
        env,
        warnings: String::new(),
    };
    let mut reader = Reader { line, family: None };
    if let (Some((place, text)), true) = (first, !matches!(verb, Verb::Help)) {
        reader.check_name(text).map_err(|f| f.at(place))?;
    }
    let (set, (second_place, second)) = (first.map_or("", |f| f.1), second.unwrap_or((0, "")));
    match verb {
        Verb::Create => {
            let Some(kind) = Kind::named(second) else {
                let words = format!("Syntax error: typename '{second}' is unknown");
                let all: Vec<&str> = super::KINDS.iter().map(|k| k.name).collect();
                return Err(reader.report(&words).at(second_place).advise(&all.join(" ")));
            };
            out.kind = Some(kind);
            reader.family = kind.default_family();
            for family in [true, false] {
                args(&mut reader, (kind, kind.create, verb), &words, family, &mut out)?;
            }
            words.clear();
            out.family = reader.family;
            let missing = match kind.name {
                "bitmap:port" => out.attributes.port.is_none() || out.attributes.port_to.is_none(),
                _ => {
                    let a = &out.attributes;
                    kind.name.starts_with("bitmap:")
                        && (a.ip.is_none() || a.ip_to.is_none() && a.cidr.is_none())
                }
            };
            if missing {
                return Err(Failure::parameter("Mandatory option `range' is missing"));
            }
        }
        Verb::Add | Verb::Del | Verb::Test => {
            let Some((kind, family)) = known(set) else {
                let error = super::Error::NoSet;
                let failed = reader.report(error.words(verb)).advise(error.advice());
                return Err(failed.at(first.map_or(0, |f| f.0)));
            };
            (out.kind, out.family, reader.family) = (Some(kind), family, family);
            reader.elem(kind, second, &mut out.attributes).map_err(|f| f.at(second_place))?;
            let options = match verb {
                Verb::Add => kind.add,
                Verb::Del => kind.del,
                _ => kind.test,
            };
            args(&mut reader, (kind, options, verb), &words, false, &mut out)?;
            words.clear();
            allowed(kind, verb, family, &out.attributes).map_err(|f| f.at(second_place))?;
        }
        Verb::Rename | Verb::Swap => {
            reader.check_name(second).map_err(|f| f.at(second_place))?;
            out.other = Some(second.to_owned());
        }
        _ => {}
    }
    match words.first() {
        Some((place, text)) if !matches!(verb, Verb::Help | Verb::Version | Verb::Quit) => {
            Err(Failure::parameter(&format!("Unknown argument {text}")).at(*place))
        }
        _ => Ok(out),
    }
}

/// `call_parser`: options of a command, only those of the family or all.
fn args(
    reader: &mut Reader,
    (kind, options, verb): (&Kind, &[Arg], Verb),
    words: &[(usize, &str)],
    family: bool,
    out: &mut Command,
) -> Result<(), Failure> {
    let mut given: Vec<&str> = Vec::new();
    let mut i = 0;
    while let Some(&(place, word)) = words.get(i) {
        let name = word.strip_prefix("--").unwrap_or(word);
        let matches = |a: &&Arg| {
            a.name() == name || **a == Arg::Inet && name == "-4" || **a == Arg::Inet6 && name == "-6"
        };
        let Some(arg) = options.iter().find(matches) else {
            let names: Vec<&str> = options.iter().map(|a| a.name()).filter(|n| !n.starts_with('-')).collect();
            let help = format!("options of {}: {}", kind.name, names.join(" "));
            return Err(Failure::parameter(&format!("Unknown argument: `{word}'")).at(place).advise(&help));
        };
        i += 1;
        let mut value = word;
        if arg.takes_value() {
            let Some(&(_, text)) = words.get(i) else {
                let words = format!("Missing mandatory argument of option `{}'", arg.name());
                return Err(Failure::parameter(&words).at(place));
            };
            value = text;
            i += 1;
        }
        if arg.is_family() != family {
            continue;
        }
        let key = if arg.is_family() { "family" } else { arg.name() };
        if given.contains(&key) {
            let words = format!("Syntax error: {} already specified", arg.name());
            return Err(reader.report(&words).at(place));
        }
        given.push(key);
        let place = if arg.takes_value() { place + 1 } else { place };
        one(reader, (*arg, verb), value, out).map_err(|f| f.at(place))?;
    }
    Ok(())
}

/// `ipset_call_parser`: one option.
fn one(reader: &mut Reader, (arg, verb): (Arg, Verb), value: &str, out: &mut Command) -> Result<(), Failure> {
    let family = reader.family;
    let int = |most: u64| number(value, 0, most).map_err(|e| reader.report(&e));
    let a = &mut out.attributes;
    match arg {
        Arg::Family => {
            reader.family = Some(match value {
                "inet" | "ipv4" | "-4" => Family::Ip,
                "inet6" | "ipv6" | "-6" => Family::Ip6,
                "any" | "unspec" => {
                    return Err(reader.report(super::Error::Family.words(verb)).advise("inet or inet6"));
                }
                _ => {
                    let words = format!("Syntax error: unknown inet family {value}");
                    return Err(reader.report(&words).advise("inet or inet6"));
                }
            });
        }
        Arg::Inet => reader.family = Some(Family::Ip),
        Arg::Inet6 => reader.family = Some(Family::Ip6),
        Arg::Hashsize => a.hashsize = Some(int(u32::MAX.into())? as u32),
        Arg::Maxelem => a.maxelem = Some(int(u32::MAX.into())? as u32),
        Arg::Markmask => a.markmask = Some(int(u32::MAX.into())? as u32),
        Arg::Size => a.size = Some(int(u32::MAX.into())? as u32),
        Arg::Initval => a.initval = Some(int(u32::MAX.into())? as u32),
        Arg::Bucketsize => a.bucketsize = Some(int(255)? as u8),
        Arg::Netmask | Arg::Bitmask => {
            let bits = family.unwrap_or_default().bits() as u8;
            let other = if arg == Arg::Netmask { a.bitmask.is_some() } else { a.netmask.is_some() };
            if other {
                let words = "Syntax error: bitmask and netmask are mutually exclusive, provide only one";
                return Err(reader.report(words));
            }
            if arg == Arg::Bitmask {
                let Some(mask) = family.unwrap_or_default().parse(value) else {
                    let which = if bits == 32 { ("IPv4", "inet") } else { ("IPv6", "inet6") };
                    let words = format!(
                        "Syntax error: cannot parse {value}: resolving to {} address failed\nSyntax error: bitmask is not valid for family = {}",
                        which.0, which.1
                    );
                    return Err(reader.report(&words));
                };
                a.bitmask = Some(mask);
                return Ok(());
            }
            a.netmask = Some(super::value::cidr(value, 1, bits).map_err(|e| {
                let words = format!("{e}\nSyntax error: netmask is out of the inclusive range of 1-{bits}");
                reader.report(&words)
            })?);
        }
        Arg::Timeout => a.timeout = Some(int((u32::MAX as u64 >> 1) / 1000)? as u32),
        Arg::Counters => a.counters = true,
        Arg::Comment => a.comments = true,
        Arg::Forceadd => a.forceadd = true,
        Arg::Skbinfo => a.skbinfo = true,
        Arg::Probes | Arg::Resize | Arg::Gc | Arg::IgnoredFrom | Arg::IgnoredTo | Arg::IgnoredNetwork => {
            let name = arg.name();
            let warning = if out.warnings.is_empty() { "Warning: " } else { "" };
            out.warnings +=
                &format!("{warning}Option '--{name} {value}' is ignored. Please upgrade your syntax.\n");
        }
        Arg::IpRange => reader.net_range(value, a)?,
        Arg::Network => reader.net(value, a)?,
        Arg::FromIp => reader.single_ip(false, value, a)?,
        Arg::ToIp => {
            let mut to = Attributes::default();
            reader.single_ip(false, value, &mut to)?;
            a.ip_to = to.ip;
        }
        Arg::PortRange => reader.tcp_udp_port(value, a)?,
        Arg::FromPort => a.port = Some(reader.port(value, "tcp")?),
        Arg::ToPort => a.port_to = Some(reader.port(value, "tcp")?),
        Arg::Nomatch => a.nomatch = true,
        Arg::Wildcard => a.wildcard = true,
        Arg::Packets => a.packets = Some(int(u64::MAX - 1)?),
        Arg::Bytes => a.bytes = Some(int(u64::MAX - 1)?),
        Arg::AdtComment => {
            if value.contains('"') {
                return Err(reader.report("Syntax error: \" character is not permitted in comments"));
            }
            if value.len() > 255 {
                let words = "Syntax error: Comment is longer than the maximum allowed 255 characters";
                return Err(reader.report(words));
            }
            a.comment = Some(value.to_owned());
        }
        Arg::Skbmark => a.skbmark = Some(reader.skbmark(value)?),
        Arg::Skbprio => a.skbprio = Some(reader.skbprio(value)?),
        Arg::Skbqueue => a.skbqueue = Some(int(65_535)? as u16),
        Arg::Before | Arg::After => {
            reader.check_name(value)?;
            a.nameref = Some(value.to_owned());
            a.before = arg == Arg::Before;
        }
    }
    Ok(())
}

/// `check_allowed`: what an element has and a command does not take.
fn allowed(kind: &Kind, verb: Verb, family: Option<Family>, a: &Attributes) -> Result<(), Failure> {
    let may = kind.need | if verb == Verb::Test { kind.test_more } else { kind.more };
    let given = [
        (opt::IP_TO, a.ip_to.is_some(), "FROM-TO IP range is"),
        (opt::CIDR, a.cidr.is_some(), "IP/CIDR range is"),
        (opt::PORT_TO, a.port_to.is_some(), "FROM-TO port range is"),
        (opt::CIDR2, a.cidr2.is_some(), "IP/CIDR range is"),
        (opt::IP2_TO, a.ip2_to.is_some(), "FROM-TO IP range is"),
    ];
    let name = match verb {
        Verb::Add => "add",
        Verb::Del => "del",
        _ => "test",
    };
    let family = match family {
        Some(Family::Ip) => "inet",
        Some(Family::Ip6) => "inet6",
        None => "unspec",
    };
    match given.iter().find(|(bit, given, _)| *given && may & bit == 0) {
        Some((_, _, what)) => Err(Failure::other(&format!(
            "{what} not allowed in command {name} with set type {} and family {family}",
            kind.name
        ))),
        None => Ok(()),
    }
}

/// Words of a line of a restored file: blanks divide them, quotes hold them together.
///
/// # Errors
/// A quote that is not closed.
pub fn words(text: &str) -> Result<Vec<String>, Failure> {
    let (mut out, mut word, mut quoted) = (vec!["ipset".to_owned()], String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' | '\t' | '\r' | '\n' if !quoted => {
                if !word.is_empty() {
                    out.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if quoted {
        return Err(Failure::parameter("Missing close quote!"));
    }
    if !word.is_empty() {
        out.push(word);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, Failure> {
        let words = words(line).unwrap();
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        parse(&texts, 0, &|name| {
            let kind = match name {
                "n" => "hash:net",
                "p" => "hash:ip,port,net",
                "l" => "list:set",
                "a" => "hash:ip",
                _ => return None,
            };
            Kind::named(kind).map(|k| (k, k.default_family()))
        })
    }

    #[test]
    fn commands_go_by_any_beginning() {
        for (line, verb) in [
            ("n x hash:ip", Verb::Create),
            ("-N x hash:ip", Verb::Create),
            ("--create x hash:ip", Verb::Create),
            ("a a 10.0.0.1", Verb::Add),
            ("-A a 10.0.0.1", Verb::Add),
            ("d a 10.0.0.1", Verb::Del),
            ("des", Verb::Destroy),
            ("-X a", Verb::Destroy),
            ("l", Verb::List),
            ("s", Verb::Save),
            ("-R", Verb::Restore),
            ("e a b", Verb::Rename),
            ("w a b", Verb::Swap),
        ] {
            assert_eq!(read(line).unwrap().verb, verb, "{line}");
        }
    }

    #[test]
    fn elements_have_parts() {
        let a =
            read("add p 10.0.0.1-10.0.0.9,udp:53-60,192.168.0.0/16 nomatch timeout 3").unwrap().attributes;
        assert_eq!((a.ip, a.ip_to), (Some(0x0a00_0001), Some(0x0a00_0009)));
        assert_eq!((a.proto, a.port, a.port_to), (Some(17), Some(53), Some(60)));
        assert_eq!((a.ip2, a.cidr2, a.nomatch, a.timeout), (Some(0xc0a8_0000), Some(16), true, Some(3)));
        let a = read("add l x,before,y").unwrap().attributes;
        assert_eq!((a.name.as_deref(), a.nameref.as_deref(), a.before), (Some("x"), Some("y"), true));
    }

    #[test]
    fn quotes_hold_words_together() {
        let words = words("add a 10.0.0.1 comment \"two words\"\n").unwrap();
        assert_eq!(words.last().unwrap(), "two words");
        assert!(super::words("add \"a").is_err());
    }

    #[test]
    fn what_a_command_does_not_take_is_told() {
        let said = |line: &str| read(line).unwrap_err().stderr;
        assert_eq!(
            said("test n 10.0.0.1-10.0.0.4"),
            "ipset v7.17: FROM-TO IP range is not allowed in command test with set type hash:net and family inet\n"
        );
        assert!(said("add a 10.0.0.1 nomatch").starts_with("ipset v7.17: Unknown argument: `nomatch'\nTry"));
    }
}
