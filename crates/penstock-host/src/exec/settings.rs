//! `/proc/sys`: `sysctl`, `cat` and `echo … >`.
//!
//! Follows: procps-ng 4.0 `sysctl.c`; linux v6.12 `net/ipv4/devinet.c` (`ip_forward` writes every device's
//! `forwarding`), `sysctl_net_ipv4.c`.
//! Differs: the keys in [`KEYS`] and no others; per-device keys follow the machine's.

use super::Ran;
use crate::{Host, Output};
use penstock_lang::sysctl::{self, Request};
use penstock_lang::token::Line;

/// The keys there are.
const KEYS: &[&str] = &[
    "net.core.default_qdisc",
    "net.ipv4.conf.all.forwarding",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.default.forwarding",
    "net.ipv4.conf.default.rp_filter",
    "net.ipv4.icmp_echo_ignore_all",
    "net.ipv4.ip_default_ttl",
    "net.ipv4.ip_forward",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
];

/// Why a value was not taken: errno's text.
type Refusal = &'static str;

impl Host {
    /// A setting's value as `/proc/sys` shows it; `None` for a key there is not.
    ///
    /// Keys of TCP (`net.ipv4.tcp_congestion_control`, `tcp_sack`, `tcp_timestamps`, `tcp_window_scaling`, `tcp_ecn`) are
    /// kept here and read by whoever makes the connections.
    pub fn setting(&self, key: &str) -> Option<String> {
        let flag = |on: bool| Some(u8::from(on).to_string());
        match key {
            "net.ipv4.ip_forward" | "net.ipv4.conf.all.forwarding" | "net.ipv4.conf.default.forwarding" => {
                flag(self.sysctl.ip_forward)
            }
            "net.ipv4.ip_default_ttl" => Some(self.sysctl.default_ttl.to_string()),
            "net.ipv4.icmp_echo_ignore_all" => flag(self.sysctl.icmp_echo_ignore_all),
            "net.ipv4.conf.all.rp_filter" | "net.ipv4.conf.default.rp_filter" => Some("0".to_owned()),
            "net.core.default_qdisc" if self.kernel == penstock_model::Kernel::V2_6_35 => None,
            "net.core.default_qdisc" => Some("pfifo_fast".to_owned()),
            "net.ipv4.tcp_congestion_control" => Some(self.sysctl.congestion_control.clone()),
            "net.ipv4.tcp_sack" => flag(self.sysctl.tcp_sack),
            "net.ipv4.tcp_timestamps" => flag(self.sysctl.tcp_timestamps),
            "net.ipv4.tcp_window_scaling" => flag(self.sysctl.tcp_window_scaling),
            "net.ipv4.tcp_ecn" => Some(self.sysctl.tcp_ecn.to_string()),
            _ => None,
        }
    }

    fn set_setting(&mut self, key: &str, value: &str) -> Result<(), Refusal> {
        const INVALID: Refusal = "Invalid argument";
        let value = value.trim();
        let number = || value.split_whitespace().next().and_then(|v| v.parse::<i64>().ok()).ok_or(INVALID);
        match key {
            "net.ipv4.ip_forward" | "net.ipv4.conf.all.forwarding" => {
                self.sysctl.ip_forward = number()? != 0;
            }
            "net.ipv4.conf.default.forwarding" => {
                number()?;
            }
            "net.ipv4.ip_default_ttl" => {
                let ttl = u8::try_from(number()?).ok().filter(|&t| t > 0).ok_or(INVALID)?;
                self.sysctl.default_ttl = ttl;
            }
            "net.ipv4.icmp_echo_ignore_all" => self.sysctl.icmp_echo_ignore_all = number()? != 0,
            // Reverse path filtering is off; saying so again is no error, turning it on would be a lie.
            "net.ipv4.conf.all.rp_filter" | "net.ipv4.conf.default.rp_filter" => {
                if number()? != 0 {
                    return Err("Operation not supported");
                }
            }
            "net.core.default_qdisc" if value == "pfifo_fast" => {}
            "net.core.default_qdisc" => return Err("No such file or directory"),
            "net.ipv4.tcp_congestion_control" => {
                let ok = !value.is_empty()
                    && value.len() < 16
                    && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if !ok {
                    return Err("No such file or directory");
                }
                self.sysctl.congestion_control = value.to_owned();
            }
            "net.ipv4.tcp_sack" => self.sysctl.tcp_sack = number()? != 0,
            "net.ipv4.tcp_timestamps" => self.sysctl.tcp_timestamps = number()? != 0,
            "net.ipv4.tcp_window_scaling" => self.sysctl.tcp_window_scaling = number()? != 0,
            "net.ipv4.tcp_ecn" => {
                let ecn = u8::try_from(number()?).ok().filter(|&v| v <= 2).ok_or(INVALID)?;
                self.sysctl.tcp_ecn = ecn;
            }
            _ => return Err("No such file or directory"),
        }
        Ok(())
    }

    /// `net.ipv4.conf.eth0.forwarding` stands for the machine's where the device is there.
    fn canonical_key(&self, key: &str) -> String {
        if let Some(rest) = key.strip_prefix("net.ipv4.conf.")
            && let Some((device, name)) = rest.split_once('.')
            && self.ifindex(device).is_some()
        {
            return format!("net.ipv4.conf.all.{name}");
        }
        key.to_owned()
    }

    pub(super) fn sysctl(&mut self, line: &Line) -> Ran {
        let command = match sysctl::parse(&line.words) {
            Ok(command) => command,
            Err(f) if f.exit == 0 => return Output { stdout: f.stderr, ..Output::default() },
            Err(f) => return Output::fail(f.stderr, f.exit, "sysctl -w net.ipv4.ip_forward=1"),
        };
        let before = self.sysctl.clone();
        let mut out = Output::default();
        for request in &command.requests {
            let one = self.sysctl_request(request, &command);
            out.stdout.push_str(&one.stdout);
            out.stderr.push_str(&one.stderr);
            out.diagnostics.extend(one.diagnostics);
            out.status = out.status.max(one.status);
        }
        if out.status != 0 {
            self.sysctl = before;
        }
        out
    }

    fn sysctl_request(&mut self, request: &Request, command: &sysctl::Command) -> Ran {
        let show = |key: &str, value: &str| match command.values_only {
            true => format!("{value}\n"),
            false => format!("{key} = {value}\n"),
        };
        let unknown = |key: &str| {
            if command.ignore_unknown {
                return Output::default();
            }
            let path = sysctl::path_of_key(key);
            let stderr = format!("sysctl: cannot stat {path}: No such file or directory\n");
            Output::fail(stderr, 255, &format!("settings here: {}", KEYS.join(" ")))
        };
        match request {
            Request::All => {
                let lines = KEYS.iter().filter_map(|key| Some(show(key, &self.setting(key)?)));
                Output::say(lines.collect::<String>())
            }
            Request::Read(key) => match self.setting(&self.canonical_key(key)) {
                Some(value) => Output::say(show(key, &value)),
                None => unknown(key),
            },
            Request::Write { key, value } => {
                let canonical = self.canonical_key(key);
                if self.setting(&canonical).is_none() {
                    return unknown(key);
                }
                match self.set_setting(&canonical, value) {
                    Ok(()) if command.quiet => Output::default(),
                    Ok(()) => Output::say(show(key, value)),
                    Err(why) => {
                        let stderr = format!("sysctl: setting key \"{key}\": {why}\n");
                        Output::fail(stderr, 255, "")
                    }
                }
            }
        }
    }

    /// `echo 1 > /proc/sys/…`.
    pub(super) fn write_setting(&mut self, path: &str, text: &str) -> Ran {
        let key = sysctl::key_of_path(path).map(|key| self.canonical_key(&key));
        match key {
            Some(key) if self.setting(&key).is_some() => match self.set_setting(&key, text) {
                Ok(()) => Output::default(),
                Err(why) => Output::fail(format!("bash: echo: write error: {why}\n"), 1, ""),
            },
            _ => {
                let help = format!("settings here: {}", KEYS.join(" "));
                Output::fail(format!("bash: {path}: No such file or directory\n"), 1, &help)
            }
        }
    }

    pub(super) fn cat(&mut self, line: &Line) -> Ran {
        let mut out = Output::default();
        for word in &line.words[1..] {
            let key = sysctl::key_of_path(&word.text).map(|key| self.canonical_key(&key));
            match key.and_then(|key| self.setting(&key)) {
                Some(value) => out.stdout.push_str(&format!("{value}\n")),
                None => {
                    let stderr = format!("cat: {}: No such file or directory\n", word.text);
                    return Output::fail(stderr, 1, "files here: those under /proc/sys");
                }
            }
        }
        out
    }
}
