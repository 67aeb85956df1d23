//! `pppd`, `pon`, `poff` and `pppoe-server`: lines of PPPoE.
//!
//! Follows: ppp 2.4.9 `pppd/options.c`, `pppd.8`, Debian's `pon` and `poff`; rp-pppoe 3.15 `src/pppoe-server.c`.

use super::Files;
use super::programs::Call;
use crate::ppp::{Daemon, Server, Settings};
use crate::{Host, Output};
use penstock_model::Time;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Options that change nothing here: what they turn off is never asked for, or they are about terminals, logs and files.
const NOTHING: [&str; 30] = [
    "noauth",
    "noipdefault",
    "noaccomp",
    "nopcomp",
    "novj",
    "novjccomp",
    "noccp",
    "nobsdcomp",
    "nodeflate",
    "nopredictor1",
    "default-asyncmap",
    "hide-password",
    "show-password",
    "debug",
    "nodetach",
    "updetach",
    "detach",
    "lock",
    "nolock",
    "noipv6",
    "noipx",
    "nopersist",
    "nodefaultroute",
    "noreplacedefaultroute",
    "ipcp-accept-remote",
    "ipcp-accept-local",
    "nomultilink",
    "nomp",
    "refuse-eap",
    "noproxyarp",
];
/// The same of options with a word.
const NOTHING_1: [&str; 6] = ["logfile", "ipparam", "linkname", "logfd", "kdebug", "asyncmap"];

fn fail(text: String, help: &str) -> Output {
    Output::fail(text, 2, help)
}

/// The words of a file of options: quoted ones are one, `#` begins a comment.
fn words(text: &str) -> VecDeque<String> {
    let mut all = VecDeque::new();
    for line in text.lines() {
        let (mut word, mut quote, mut any) = (String::new(), None, false);
        for c in line.chars() {
            match (c, quote) {
                (c, Some(q)) if c == q => quote = None,
                ('"' | '\'', None) => (quote, any) = (Some(c), true),
                ('#', None) if !any => break,
                (c, None) if c.is_whitespace() => {
                    if std::mem::take(&mut any) {
                        all.push_back(std::mem::take(&mut word));
                    }
                }
                (c, _) => {
                    word.push(c);
                    any = true;
                }
            }
        }
        if any {
            all.push_back(word);
        }
    }
    all
}

/// What options say.
struct Read {
    set: Settings,
    nic: Option<String>,
    plugin: bool,
    depth: u32,
}

impl Read {
    fn new() -> Read {
        let set = Settings { mtu: 1492, mru: 1492, maxfail: 10, holdoff: 30, ..Settings::default() };
        Read { set, nic: None, plugin: false, depth: 0 }
    }
    fn file(&mut self, path: &str, files: &mut dyn Files) -> Result<(), String> {
        self.depth += 1;
        if self.depth > 8 {
            return Err(format!("pppd: options files within one another: {path}\n"));
        }
        let text =
            files.read(path).map_err(|why| format!("pppd: Can't open options file {path}: {why}\n"))?;
        let read = self.options(words(&text), files);
        self.depth -= 1;
        read
    }
    fn options(&mut self, mut rest: VecDeque<String>, files: &mut dyn Files) -> Result<(), String> {
        while let Some(word) = rest.pop_front() {
            let mut next =
                || rest.pop_front().ok_or_else(|| format!("pppd: too few parameters for option {word}\n"));
            let set = &mut self.set;
            match word.as_str() {
                w if NOTHING.contains(&w) => {}
                w if NOTHING_1.contains(&w) => drop(next()?),
                "call" => {
                    let name = next()?;
                    self.file(&format!("/etc/ppp/peers/{name}"), files)?;
                }
                "file" => {
                    let path = next()?;
                    self.file(&path, files)?;
                }
                "plugin" => {
                    let plugin = next()?;
                    let name = plugin.rsplit('/').next().unwrap_or_default();
                    if !matches!(name, "rp-pppoe.so" | "pppoe.so") {
                        return Err(format!("pppd: plugin {plugin} is not simulated\n"));
                    }
                    self.plugin = true;
                }
                "mtu" => set.mtu = number(&word, &next()?, 128, 1500)? as u16,
                "mru" => set.mru = number(&word, &next()?, 128, 1500)? as u16,
                "user" | "name" => set.user = short(&word, next()?)?,
                "password" => set.password = short(&word, next()?)?,
                "require-pap" | "+pap" | "auth" => set.require_pap = true,
                "rp_pppoe_service" | "pppoe-service" => set.service = next()?,
                "rp_pppoe_ac" | "pppoe-ac" => set.ac = next()?,
                "defaultroute" => set.defaultroute = true,
                "replacedefaultroute" => (set.defaultroute, set.replacedefaultroute) = (true, true),
                "usepeerdns" => set.usepeerdns = true,
                "ms-dns" => {
                    let text = next()?;
                    let addr = text.parse().map_err(|_| {
                        format!("pppd: invalid address parameter '{text}' for ms-dns option\n")
                    })?;
                    set.dns.push(addr);
                }
                "persist" => set.persist = true,
                "maxfail" => set.maxfail = number(&word, &next()?, 0, u32::MAX)?,
                "holdoff" => set.holdoff = number(&word, &next()?, 0, 1_000_000)?.into(),
                "lcp-echo-interval" => set.echo_interval = number(&word, &next()?, 0, 1_000_000)?.into(),
                "lcp-echo-failure" => set.echo_failure = number(&word, &next()?, 0, u32::MAX)?,
                "unit" => set.ifname = format!("ppp{}", number(&word, &next()?, 0, 65_535)?),
                "ifname" => set.ifname = next()?,
                w if w.contains(':') && addresses(w).is_some() => {
                    [set.local, set.remote] = addresses(w).unwrap_or_default();
                }
                w if w.starts_with("nic-") => self.nic = Some(w[4..].to_owned()),
                w if self.plugin && self.nic.is_none() && !w.contains(['-', '/', '+']) => {
                    self.nic = Some(w.to_owned())
                }
                w => return Err(format!("pppd: option \"{w}\" is not simulated\n")),
            }
        }
        Ok(())
    }
}

fn number(option: &str, text: &str, least: u32, most: u32) -> Result<u32, String> {
    let n = text.parse().ok().filter(|n| (least..=most).contains(n));
    n.ok_or_else(|| format!("pppd: invalid numeric parameter '{text}' for {option} option\n"))
}
/// PAP gives the length of a name and of a password one byte (RFC 1334).
fn short(option: &str, text: String) -> Result<String, String> {
    if text.len() > 255 {
        return Err(format!("pppd: {option}: more than 255 bytes\n"));
    }
    Ok(text)
}
/// `LOCAL:REMOTE`, either of which may be left out.
fn addresses(text: &str) -> Option<[Option<Ipv4Addr>; 2]> {
    let (local, remote) = text.split_once(':')?;
    let read = |t: &str| if t.is_empty() { Some(None) } else { t.parse().ok().map(Some) };
    Some([read(local)?, read(remote)?])
}
/// Names and passwords of a file of secrets.
fn secrets(files: &mut dyn Files) -> Vec<(String, String)> {
    let text = files.read("/etc/ppp/pap-secrets").unwrap_or_default();
    let line = |line: &str| {
        let words = words(line);
        (words.len() >= 3 && words[0].len().max(words[2].len()) <= 255)
            .then(|| (words[0].clone(), words[2].clone()))
    };
    text.lines().filter_map(line).collect()
}

impl Host {
    pub(super) fn pppd(&mut self, call: Call<'_>) -> Output {
        let words = call.line.words[1..].iter().map(|w| w.text.clone()).collect();
        self.pppd_with(words, call.files, call.now)
    }
    fn pppd_with(&mut self, words: VecDeque<String>, files: &mut dyn Files, now: Time) -> Output {
        const HELP: &str = "pppd plugin rp-pppoe.so eth1 user NAME password WORD noauth defaultroute";
        if words.iter().any(|w| w == "--version") {
            return Output { stderr: "pppd version 2.4.9\n".to_owned(), ..Output::default() };
        }
        let mut read = Read::new();
        if files.read("/etc/ppp/options").is_ok()
            && let Err(why) = read.file("/etc/ppp/options", files)
        {
            return fail(why, HELP);
        }
        if let Err(why) = read.options(words, files) {
            return fail(why, HELP);
        }
        let Some(nic) = read.nic else {
            return fail(
                "pppd: a line without plugin rp-pppoe.so and its device is not simulated\n".to_owned(),
                HELP,
            );
        };
        let Some(lower) = self.ifindex(&nic).filter(|&i| self.devices[i].has_header_of_ethernet()) else {
            return Output::fail(format!("pppd: Can't get MTU for {nic}: No such device\n"), 1, HELP);
        };
        let mut set = read.set;
        set.secrets = secrets(files);
        if set.password.is_empty() {
            let own = set.secrets.iter().find(|(name, _)| *name == set.user);
            set.password = own.map(|(_, word)| word.clone()).unwrap_or_default();
        }
        let name = if set.ifname.is_empty() { self.free_name("ppp") } else { set.ifname.clone() };
        if self.ifindex(&name).is_some() {
            return Output::fail(format!("Couldn't create new ppp unit: File exists ({name})\n"), 1, HELP);
        }
        set.ifname.clone_from(&name);
        // So that what follows can speak of it: it is up when the other end has answered.
        let unit = self.new_device(&name, "ppp", None);
        self.ppp_begin(Daemon::new(set, lower, unit, now), now);
        Output { stdout: "Plugin rp-pppoe.so loaded.\n".to_owned(), ..Output::default() }
    }
    pub(super) fn pon(&mut self, call: Call<'_>) -> Output {
        let name = call.line.words.get(1).map_or("provider", |w| w.text.as_str());
        let words = ["call".to_owned(), name.to_owned()].into();
        self.pppd_with(words, call.files, call.now)
    }
    pub(super) fn poff(&mut self, call: Call<'_>) -> Output {
        if self.ppp_end_all(call.now) {
            return Output::default();
        }
        Output::fail("/usr/bin/poff: No pppd is running.  None stopped.\n", 1, "pon NAME begins one")
    }
    pub(super) fn pppoe_server(&mut self, call: Call<'_>) -> Output {
        const HELP: &str =
            "pppoe-server -I eth0 -L 10.0.0.1 -R 10.0.0.2 -N 32 -O /etc/ppp/pppoe-server-options";
        let mut rest = call.line.words[1..].iter().map(|w| w.text.as_str());
        let (mut nics, mut services) = (Vec::new(), Vec::new());
        let mut server = Server {
            ac: self.name().to_owned(),
            services: Vec::new(),
            local: Ipv4Addr::new(10, 0, 0, 1),
            remote: Ipv4Addr::new(10, 67, 15, 1),
            sessions: vec![None; 64],
            settings: Settings::default(),
        };
        let mut path = "/etc/ppp/pppoe-server-options".to_owned();
        while let Some(word) = rest.next() {
            if matches!(word, "-k" | "-F" | "-i") {
                continue;
            }
            let value = rest.next().unwrap_or_default();
            let addr = value.parse::<Ipv4Addr>().ok();
            match (word, addr) {
                ("-I", _) => nics.push(value.to_owned()),
                ("-S", _) => services.push(value.to_owned()),
                ("-C", _) => server.ac = value.to_owned(),
                ("-L", Some(addr)) => server.local = addr,
                ("-R", Some(addr)) => server.remote = addr,
                ("-O", _) => path = value.to_owned(),
                ("-X" | "-q" | "-Q", _) => {}
                ("-N", _) if value.parse::<u16>().is_ok_and(|n| n > 0) => {
                    server.sessions = vec![None; value.parse::<u16>().unwrap_or(1).into()];
                }
                _ => {
                    return Output::fail(format!("pppoe-server: {word} {value} is not simulated\n"), 1, HELP);
                }
            }
        }
        if nics.is_empty() {
            nics.push("eth0".to_owned());
        }
        let mut read = Read::new();
        if let Err(why) = read.file(&path, call.files) {
            return fail(why, HELP);
        }
        (server.services, server.settings) = (services, read.set);
        server.settings.secrets = secrets(call.files);
        server.settings.ifname.clear();
        for nic in nics {
            let Some(lower) = self.ifindex(&nic) else {
                return Output::fail(
                    format!("pppoe-server: ioctl: Can't get {nic}: No such device\n"),
                    1,
                    HELP,
                );
            };
            if !self.ppp_serve(lower, server.clone()) {
                return Output::fail(format!("pppoe-server: a server listens on {nic} already\n"), 1, HELP);
            }
        }
        Output::default()
    }
}
