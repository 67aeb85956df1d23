//! `nstat`.
//!
//! Follows: iproute2 6.1.0 `misc/nstat.c`.
//! Differs: no daemon (`-d`); what it has seen last is kept by the machine, and each of its namespaces, in place of a file.

use super::Ran;
use super::programs::Call;
use crate::{Host, Output};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const USAGE: &str = "\
Usage: nstat [OPTION] [ PATTERN [ PATTERN ] ]
   -h, --help          this message
   -a, --ignore        ignore history
   -d, --scan=SECS     sample every statistics every SECS
   -j, --json          format output in JSON
   -n, --nooutput      do history only
   -p, --pretty        pretty print
   -r, --reset         reset history
   -s, --noupdate      don't update history
   -t, --interval=SECS report average over the last SECS
   -V, --version       output version information
   -z, --zeros         show entries with zero activity
";

/// The long options, each with its letter and whether it has a value.
const LONG: [(&str, char, bool); 11] = [
    ("help", 'h', false),
    ("ignore", 'a', false),
    ("scan", 'd', true),
    ("nooutput", 'n', false),
    ("json", 'j', false),
    ("pretty", 'p', false),
    ("reset", 'r', false),
    ("noupdate", 's', false),
    ("interval", 't', true),
    ("version", 'V', false),
    ("zeros", 'z', false),
];

/// What is asked for.
#[derive(Default)]
struct Asked {
    ignore: bool,
    json: bool,
    pretty: bool,
    no_output: bool,
    reset: bool,
    no_update: bool,
    zeros: bool,
    patterns: Vec<String>,
}

/// Why a command has ended before any counter was read.
enum End {
    Version,
    Usage(String),
    Said(&'static str),
    Daemon,
}

impl Asked {
    fn option(&mut self, letter: char, value: &str) -> Result<(), End> {
        match letter {
            'a' => self.ignore = true,
            'j' => self.json = true,
            'p' => self.pretty = true,
            'n' => self.no_output = true,
            'r' => self.reset = true,
            's' => self.no_update = true,
            'z' => self.zeros = true,
            // Of the daemon's samples.
            't' if value.trim_start().parse::<u32>().is_ok_and(|n| n > 0) => {}
            't' => return Err(End::Said("nstat: invalid time constant divisor\n")),
            'd' => return Err(End::Daemon),
            'V' => return Err(End::Version),
            _ => return Err(End::Usage(String::new())),
        }
        Ok(())
    }
    /// Reads the words as `getopt_long` does: options may stand behind patterns.
    fn read(words: &[&str]) -> Result<Asked, End> {
        let mut asked = Asked::default();
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word == "--" {
                asked.patterns.extend(words.by_ref().map(|w| (*w).to_owned()));
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, given) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
                let exact = LONG.iter().find(|l| l.0 == name);
                let mut near = LONG.iter().filter(|l| l.0.starts_with(name));
                let found = exact.or_else(|| near.next().filter(|_| near.next().is_none()));
                let Some(&(full, letter, valued)) = found else {
                    let ambiguous = LONG.iter().any(|l| l.0.starts_with(name));
                    let what = if ambiguous { "ambiguous" } else { "unrecognized" };
                    return Err(End::Usage(format!("nstat: {what} option '--{name}'\n")));
                };
                let value = match (valued, given) {
                    (true, Some(value)) => value,
                    (true, None) => words.next().ok_or_else(|| {
                        End::Usage(format!("nstat: option '--{full}' requires an argument\n"))
                    })?,
                    (false, None) => "",
                    (false, Some(_)) => {
                        let text = format!("nstat: option '--{full}' doesn't allow an argument\n");
                        return Err(End::Usage(text));
                    }
                };
                asked.option(letter, value)?;
            } else if let Some(letters) = word.strip_prefix('-').filter(|l| !l.is_empty()) {
                let mut rest = letters.chars();
                while let Some(letter) = rest.next() {
                    let Some(&(_, _, valued)) = LONG.iter().find(|l| l.1 == letter) else {
                        return Err(End::Usage(match letter {
                            '?' => String::new(),
                            _ => format!("nstat: invalid option -- '{letter}'\n"),
                        }));
                    };
                    let value = match (valued, rest.as_str()) {
                        (false, _) => "",
                        (true, "") => words.next().ok_or_else(|| {
                            End::Usage(format!("nstat: option requires an argument -- '{letter}'\n"))
                        })?,
                        (true, value) => value,
                    };
                    asked.option(letter, value)?;
                    if valued {
                        break;
                    }
                }
            } else {
                asked.patterns.push(word.to_owned());
            }
        }
        Ok(asked)
    }
    fn shows(&self, name: &str) -> bool {
        let fits = |pattern: &String| {
            penstock_lang::glob::fits(&pattern.to_ascii_lowercase(), &name.to_ascii_lowercase())
        };
        self.patterns.is_empty() || self.patterns.iter().any(fits)
    }
}

impl Host {
    pub(super) fn nstat(&mut self, call: Call<'_>) -> Ran {
        let words: Vec<&str> = call.line.words[1..].iter().map(|w| w.text.as_str()).collect();
        let asked = match Asked::read(&words) {
            Ok(asked) => asked,
            Err(End::Version) => return Output::say("nstat utility, iproute2-6.1.0\n"),
            Err(End::Usage(said)) => return Output::fail(said + USAGE, 255, "nstat -az, nstat 'TcpExt*'"),
            Err(End::Said(said)) => return Output::fail(said, 255, "nstat -t 60"),
            Err(End::Daemon) => {
                return Output::not_simulated("nstat -d", "nstat at two moments shows the difference");
            }
        };
        if !self.has_snmp() {
            let instead = "the counters here are those of Linux 6.12: kernel = \"6.12\"";
            return Output::not_simulated(&format!("nstat of Linux {}", self.kernel), instead);
        }
        if asked.reset {
            self.snmp.seen.clear();
        }
        let all = self.nstat_counters();
        let seen = &self.snmp.seen;
        let mut text = String::new();
        if !asked.no_output {
            let whole = asked.ignore || seen.is_empty();
            let rows = all.iter().filter_map(|(name, n)| {
                let before = if whole { 0 } else { seen.get(name).copied().unwrap_or(0) };
                let n = *n as u64;
                // One that has fallen is told as if it had not moved.
                let (n, fell) = (n.saturating_sub(before), n < before);
                ((n > 0 || asked.zeros) && asked.shows(name)).then_some((name, n, fell))
            });
            text = if asked.json { json(rows, asked.pretty) } else { table(rows) };
        }
        if !asked.no_update {
            let kept = |name: &String| {
                if asked.shows(name) { None } else { seen.get(name).copied() }
            };
            let now = all.into_iter().map(|(name, n)| {
                let n = kept(&name).unwrap_or(n as u64);
                (name, n)
            });
            let now: BTreeMap<String, u64> = now.filter(|(_, n)| *n > 0 || asked.zeros).collect();
            self.snmp.seen = now;
        }
        Output::say(text)
    }
}

fn table<'a>(rows: impl Iterator<Item = (&'a String, u64, bool)>) -> String {
    let mut text = String::from("#kernel\n");
    for (name, n, fell) in rows {
        let _ = writeln!(text, "{name:<32}{n:<16}{:6.1}{}", 0.0, if fell { " (overflow)" } else { "" });
    }
    text
}

fn json<'a>(rows: impl Iterator<Item = (&'a String, u64, bool)>, pretty: bool) -> String {
    let rows: Vec<String> =
        rows.map(|(name, n, _)| format!("\"{name}\":{}{n}", if pretty { " " } else { "" })).collect();
    match (pretty, rows.is_empty()) {
        (false, _) => format!("{{\"kernel\":{{{}}}}}\n", rows.join(",")),
        (true, true) => "{\n    \"kernel\": {}\n}\n".to_owned(),
        (true, false) => {
            format!("{{\n    \"kernel\": {{\n        {}\n    }}\n}}\n", rows.join(",\n        "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::{Kernel, Time};

    fn host() -> Host {
        let mut host = Host::new("a", Kernel::V6_12, 1);
        host.snmp.ip.requests = 3;
        host.snmp.icmp.sends(8);
        host.snmp.tell_tcp(BTreeMap::from([("TcpExtTCPTimeouts", 2), ("TcpCurrEstab", 1)]));
        host
    }
    fn said(host: &mut Host, line: &str) -> String {
        let output = host.exec(line, Time::ZERO);
        assert_eq!(output.status, 0, "{line}: {}", output.stderr);
        output.stdout
    }

    #[test]
    fn it_shows_what_has_come_since_it_showed_last() {
        let mut host = host();
        let first = said(&mut host, "nstat");
        assert_eq!(
            first,
            "#kernel\n\
             IpOutRequests                   3                  0.0\n\
             IcmpOutMsgs                     1                  0.0\n\
             IcmpOutEchos                    1                  0.0\n\
             IcmpMsgOutType8                 1                  0.0\n\
             TcpExtTCPTimeouts               2                  0.0\n"
        );
        assert_eq!(said(&mut host, "nstat"), "#kernel\n");
        host.snmp.ip.requests += 4;
        assert_eq!(said(&mut host, "nstat -ns"), "", "neither shown nor kept");
        assert_eq!(said(&mut host, "nstat -j"), "{\"kernel\":{\"IpOutRequests\":4}}\n");
        assert_eq!(said(&mut host, "nstat --zero --noupdate tcpext*timeouts").lines().count(), 2);
        assert_eq!(
            said(&mut host, "nstat -as"),
            first.replace("Requests                   3", "Requests                   7")
        );
        assert_eq!(
            said(&mut host, "nstat -r IpOut*").lines().nth(1),
            Some("IpOutRequests                   7                  0.0")
        );
    }

    #[test]
    fn what_is_not_shown_stays_to_be_shown() {
        let mut host = host();
        said(&mut host, "nstat -n");
        host.snmp.ip.requests += 1;
        host.snmp.icmp.sends(8);
        assert_eq!(said(&mut host, "nstat Ip*Requests").lines().count(), 2);
        let rest = said(&mut host, "nstat");
        assert!(rest.contains("IcmpOutEchos                    1") && !rest.contains("Requests"), "{rest}");
    }

    #[test]
    fn what_it_cannot_read_it_says() {
        let mut host = host();
        for (line, said) in [
            ("nstat -x", "nstat: invalid option -- 'x'\nUsage: nstat"),
            ("nstat --foo", "nstat: unrecognized option '--foo'\nUsage: nstat"),
            ("nstat -t", "nstat: option requires an argument -- 't'\nUsage: nstat"),
            ("nstat -t x", "nstat: invalid time constant divisor\n"),
        ] {
            let output = host.exec(line, Time::ZERO);
            assert_eq!(output.status, 255, "{line}");
            assert!(output.stderr.starts_with(said), "{line}: {}", output.stderr);
        }
        assert_eq!(host.exec("nstat -d 5", Time::ZERO).unsimulated(), Some("nstat -d"));
        let mut old = Host::new("a", Kernel::V2_6_35, 1);
        assert!(old.exec("nstat", Time::ZERO).unsimulated().is_some());
    }

    #[test]
    fn the_files_have_two_lines_a_group() {
        let mut host = host();
        let snmp = said(&mut host, "cat /proc/net/snmp");
        let ip: Vec<&str> = snmp.lines().filter(|l| l.starts_with("Ip: ")).collect();
        let at = ip[0].split(' ').position(|w| w == "OutRequests").unwrap();
        assert_eq!((ip.len(), ip[1].split(' ').nth(at)), (2, Some("3")));
        assert!(snmp.contains("\nTcp: 1 200 120000 -1 0 0 0 0 1 "), "{snmp}");
        assert!(snmp.contains("\nIcmpMsg: OutType8\nIcmpMsg: 1\n"));
        let netstat = said(&mut host, "cat /proc/net/netstat");
        let groups: Vec<usize> = netstat.lines().map(|l| l.split(' ').count()).collect();
        assert_eq!(groups, [groups[0], groups[0], 19, 19]);
        assert_eq!(said(&mut host, "cat /proc/net/snmp6").lines().count(), 86);
    }
}
