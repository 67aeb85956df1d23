//! `/proc/sys`: `sysctl`, `cat` and `echo … >`.
//!
//! Follows: procps-ng 4.0 `sysctl.c`; linux v6.12 `net/ipv4/devinet.c` (`ip_forward` writes every device's
//! `forwarding`), `sysctl_net_ipv4.c`.
//! Differs: the keys in [`keys`] and no others; what follows from each stands there, and [`Host::unfollowed_settings`] tells those from which
//! less follows than on Linux.

pub(crate) mod keys;
mod more;

use self::keys::{CONF, CONF6, Follows, KEYS};
use super::{Files, Ran};
use crate::netfilter::conntrack;
use crate::{Host, NetDevice, Output, neigh, six};
use penstock_lang::sysctl::{self, Request};
use penstock_lang::token::Line;
use penstock_model::{Kernel, Time};

/// The device, or `default`, whose `forwarding` a key is.
fn forwarding_of(key: &str) -> Option<&str> {
    key.strip_prefix("net.ipv4.conf.")?.strip_suffix(".forwarding")
}

/// Why a value was not taken: errno's text.
type Refusal = &'static str;
const INVALID: Refusal = "Invalid argument";

/// A number as a setting takes it: decimal, `0x…` or octal behind a 0.
//= linux v6.12 kernel/sysctl.c proc_get_long (simple_strtoul with base 0)
pub(super) fn long(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        None => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(digits, radix).ok().map(|n| sign * n)
}

impl Host {
    /// All keys of `/proc/sys` in order.
    pub fn setting_keys(&self) -> Vec<String> {
        let names = ["all", "default"].into_iter().chain(self.devices.iter().map(|d| d.name.as_str()));
        let conf = names.flat_map(|name| {
            let four = CONF.iter().map(move |(k, ..)| format!("net.ipv4.conf.{name}.{k}"));
            let six = CONF6.iter().chain(more::MORE_CONF6);
            four.chain(more::MORE_CONF.iter().map(move |(k, ..)| format!("net.ipv4.conf.{name}.{k}")))
                .chain(six.map(move |(k, ..)| format!("net.ipv6.conf.{name}.{k}")))
                .chain(more::NEIGH.iter().map(move |(k, ..)| format!("net.ipv4.neigh.{name}.{k}")))
                .chain(more::NEIGH.iter().map(move |(k, ..)| format!("net.ipv6.neigh.{name}.{k}")))
        });
        let tracking = conntrack::settings::KEYS.iter().copied();
        let rest = more::MORE.iter().map(|(key, ..)| *key).chain(more::ELSEWHERE.iter().map(|(key, _)| *key));
        let fixed = KEYS.iter().map(|(key, ..)| *key).chain(tracking).chain(rest);
        let mut keys: Vec<String> = fixed.map(str::to_owned).chain(conf).collect();
        keys.retain(|key| self.setting(key).is_some());
        keys.sort();
        keys
    }
    /// Whether a command has set a key that is kept as text to this value.
    pub(crate) fn is_set_to(&self, key: &str, value: &str) -> bool {
        self.sysctl.kept.get(key).is_some_and(|v| v == value)
    }
    /// What `net.ipv4.conf` says of a device: the larger of `all` and its own.
    //= linux v6.12 include/linux/inetdevice.h IN_DEV_MAXCONF
    pub(crate) fn conf_max(&self, ifindex: u32, attribute: &str) -> i64 {
        let own = self.conf_of(&self.devices[ifindex].name, attribute);
        self.conf_of("all", attribute).max(own)
    }
    /// The same of the one or the other alone; 0 where no command has set it.
    pub(crate) fn conf_of(&self, name: &str, attribute: &str) -> i64 {
        let kept = self.sysctl.kept.get(&format!("net.ipv4.conf.{name}.{attribute}"));
        kept.and_then(|v| v.parse().ok()).unwrap_or(0)
    }
    /// A device that comes begins as `default` is now.
    //= linux v6.12 net/ipv4/devinet.c inetdev_init; net/ipv6/addrconf.c ipv6_add_dev
    pub(crate) fn conf_begins(&mut self, device: &mut NetDevice) {
        device.six = six::Device6::new(self.six.begins);
        device.rp_filter = self.sysctl.rp_filter_begins;
        self.sysctl.filters_sources |= device.rp_filter > 0;
        device.redirects = self.sysctl.redirects_begin;
        (device.forwarding, device.has_own_conf) = (self.sysctl.forwarding_begins, false);
        let (name, mut new) = (&device.name, Vec::new());
        for folder in ["net.ipv4.conf.", "net.ipv6.conf."] {
            let default = format!("{folder}default.");
            let all = self.sysctl.kept.range(default.clone()..).take_while(|k| k.0.starts_with(&default));
            new.extend(all.map(|(k, v)| (format!("{folder}{name}.{}", &k[default.len()..]), v.clone())));
        }
        self.sysctl.kept.extend(new);
    }
    /// A device has another name, or none: it is gone, and its settings with it.
    pub(crate) fn conf_moves(&mut self, old: &str, new: Option<&str>) {
        for folder in ["net.ipv4.conf.", "net.ipv6.conf."] {
            let own = format!("{folder}{old}.");
            let keys = self.sysctl.kept.range(own.clone()..).take_while(|k| k.0.starts_with(&own));
            let keys: Vec<String> = keys.map(|k| k.0.clone()).collect();
            for key in keys {
                let value = self.sysctl.kept.remove(&key);
                let was_set = self.sysctl.of_devices.remove(&key);
                let (Some(new), Some(value)) = (new, value) else { continue };
                let moved = format!("{folder}{new}.{}", &key[own.len()..]);
                if was_set {
                    self.sysctl.of_devices.insert(moved.clone());
                }
                self.sysctl.kept.insert(moved, value);
            }
        }
    }
    /// What a setting of `net.ipv4.conf` means besides being kept.
    fn conf_is_set(&mut self, key: &str, name: &str, attribute: &str, value: i64, now: Time) {
        match attribute {
            "rp_filter" => self.set_rp_filter(name, value),
            "accept_local" => {
                self.sysctl.accepts_local |= value != 0;
                self.fib.invalidate();
            }
            "route_localnet" => self.fib.invalidate(),
            _ => self.set_redirects(name, attribute, value != 0),
        }
        if name == "default" {
            //= linux v6.12 net/ipv4/devinet.c devinet_copy_dflt_conf: who has an address or was set keeps what it has
            let follow = self.devices.iter().filter(|d| !d.has_own_conf).map(|d| d.name.clone());
            let keys = follow.map(|name| format!("net.ipv4.conf.{name}.{attribute}"));
            let keys: Vec<String> = keys.filter(|key| !self.sysctl.of_devices.contains(key)).collect();
            for key in keys {
                // It is a value that `default` has taken.
                let _ = self.set_setting(&key, &value.to_string(), now);
                self.sysctl.of_devices.remove(&key);
            }
        } else if name != "all" {
            self.sysctl.of_devices.insert(key.to_owned());
        }
    }
    /// Whether the mark of a packet counts when the way back to its source is looked for (`src_valid_mark`).
    #[inline]
    pub(crate) fn is_valid_mark(&self, ifindex: u32) -> bool {
        self.sysctl.has_valid_marks && self.conf_max(ifindex, "src_valid_mark") > 0
    }
    /// A setting's value as `/proc/sys` shows it; `None` for a key there is not.
    ///
    /// Whoever makes the connections reads those of TCP by [`Host::tcp_settings`].
    pub fn setting(&self, key: &str) -> Option<String> {
        let flag = |on: bool| Some(u8::from(on).to_string());
        match key {
            "net.ipv4.ip_forward" => flag(self.sysctl.ip_forward),
            "net.ipv4.ip_default_ttl" => Some(self.sysctl.default_ttl.to_string()),
            "net.ipv4.icmp_echo_ignore_all" => flag(self.sysctl.icmp_echo_ignore_all),
            "net.core.default_qdisc" if self.kernel == Kernel::V2_6_35 => None,
            "net.core.default_qdisc" => Some(self.default_qdisc.id.to_owned()),
            "net.ipv4.tcp_congestion_control" => Some(self.sysctl.congestion_control.clone()),
            "net.ipv4.tcp_available_congestion_control" => Some(self.available_controls()),
            "net.ipv4.tcp_allowed_congestion_control" => Some(self.allowed_controls()),
            "net.ipv4.tcp_sack" => flag(self.sysctl.tcp_sack),
            "net.ipv4.tcp_timestamps" => Some(self.sysctl.tcp_timestamps.to_string()),
            "net.ipv4.tcp_window_scaling" => flag(self.sysctl.tcp_window_scaling),
            "net.ipv4.tcp_ecn" => Some(self.sysctl.tcp_ecn.to_string()),
            _ => {
                if let Some(number) = self.netfilter.tracking().setting(key) {
                    return Some(number.to_string());
                }
                let begins = self.begins(key)?;
                if let Some(name) = forwarding_of(key) {
                    let own = match name {
                        "default" => self.sysctl.forwarding_begins,
                        _ => self.devices.iter().find(|d| d.name == name).and_then(|d| d.forwarding),
                    };
                    return flag(own.unwrap_or(self.sysctl.ip_forward));
                }
                if let Some(number) = self.setting6(key).or_else(|| self.neigh_setting(key)) {
                    return Some(number.to_string());
                }
                Some(self.sysctl.kept.get(key).cloned().unwrap_or_else(|| begins.to_owned()))
            }
        }
    }
    /// Of `net.ipv4.neigh` and `net.ipv6.neigh`, those that something follows from.
    fn neigh_setting(&self, key: &str) -> Option<i64> {
        let (six, name, of) = neigh::split(key)?;
        let ifindex = if name == "default" { 0 } else { self.ifindex(name)? };
        self.neigh.setting(six, ifindex, of)
    }
    /// What a key that is kept as text begins with; `None` for a key there is not.
    fn begins(&self, key: &str) -> Option<&'static str> {
        let folders = [
            ("net.ipv4.conf.", CONF, more::MORE_CONF),
            ("net.ipv6.conf.", CONF6, more::MORE_CONF6),
            ("net.ipv4.neigh.", more::NEIGH, &[]),
            ("net.ipv6.neigh.", more::NEIGH, &[]),
        ];
        for (folder, own, more) in folders {
            if let Some((name, attribute)) = key.strip_prefix(folder).and_then(|rest| rest.rsplit_once('.')) {
                let all = name == "all" && folder.ends_with("conf.");
                // Where IPv6 has left a device, its settings have too.
                let there = |d: &NetDevice| {
                    d.name == name && (d.mtu >= six::MIN_MTU || !folder.starts_with("net.ipv6"))
                };
                let known = all || name == "default" || self.devices.iter().any(there);
                return own.iter().chain(more).find(|c| known && c.0 == attribute).map(|c| c.1);
            }
        }
        let late = matches!(
            key,
            "net.core.txrehash"
                | "net.ipv4.tcp_rto_min_us"
                | "net.ipv4.tcp_early_retrans"
                | "net.ipv4.tcp_min_tso_segs"
                | "net.ipv4.tcp_pacing_ca_ratio"
                | "net.ipv4.tcp_pacing_ss_ratio"
                | "net.ipv4.tcp_recovery"
        );
        if late && self.kernel == Kernel::V2_6_35 {
            return None;
        }
        let newest = matches!(key, "net.ipv4.tcp_ecn_option" | "net.ipv4.tcp_ecn_option_beacon");
        if newest && self.kernel != Kernel::V7_2 {
            return None;
        }
        if key.starts_with("net.bridge.") && !self.has_br_netfilter() {
            return None;
        }
        if self.kernel == Kernel::V7_2
            && matches!(key, "net.ipv4.icmp_msgs_per_sec" | "net.ipv4.icmp_msgs_burst")
        {
            return Some("10000");
        }
        let own = KEYS.iter().find(|k| k.0 == key).or_else(|| more::find(key)).map(|k| k.1);
        own.or_else(|| more::elsewhere(key))
    }

    pub(crate) fn set_setting(&mut self, key: &str, value: &str, now: Time) -> Result<(), Refusal> {
        let value = value.trim();
        let number = || value.split_whitespace().next().and_then(|v| v.parse::<i64>().ok()).ok_or(INVALID);
        match key {
            "net.ipv4.ip_forward" | "net.ipv4.conf.all.forwarding" => {
                let on = number()? != 0;
                if self.sysctl.ip_forward != on {
                    //= linux v6.12 net/ipv4/devinet.c inet_forward_change
                    self.sysctl.ip_forward = on;
                    self.sysctl.forwarding_begins = None;
                    let redirects = u8::from(!on).to_string();
                    self.sysctl.kept.insert("net.ipv4.conf.all.accept_redirects".to_owned(), redirects);
                    self.sysctl.redirects.accept = !on;
                    for device in self.devices.iter_mut() {
                        device.forwarding = None;
                    }
                }
            }
            _ if forwarding_of(key).is_some_and(|name| self.devices.iter().any(|d| d.name == name)) => {
                let on = number()? != 0;
                let name = forwarding_of(key);
                for device in self.devices.iter_mut().filter(|d| Some(d.name.as_str()) == name) {
                    device.forwarding = Some(on);
                }
            }
            //= linux v6.12 net/ipv4/devinet.c devinet_sysctl_forward: devices that are there keep what they have
            "net.ipv4.conf.default.forwarding" => self.sysctl.forwarding_begins = Some(number()? != 0),
            "net.ipv4.ip_default_ttl" => {
                let ttl = u8::try_from(number()?).ok().filter(|&t| t > 0).ok_or(INVALID)?;
                self.sysctl.default_ttl = ttl;
            }
            "net.ipv4.icmp_echo_ignore_all" => self.sysctl.icmp_echo_ignore_all = number()? != 0,
            "net.core.default_qdisc" => {
                // What is not a kind, or stands in no queue's place, is refused alike.
                let kind = penstock_sched::sch::find(value, self.kernel).filter(|k| k.id != "noqueue");
                self.default_qdisc = kind.ok_or("No such file or directory")?;
                for device in self.devices.iter_mut() {
                    device.tree.set_default(self.default_qdisc);
                }
            }
            "net.ipv4.tcp_fastopen_key" => {
                crate::tcp::fastopen_keys(value).ok_or(INVALID)?;
                self.sysctl.kept.insert(key.to_owned(), value.to_owned());
            }
            "net.ipv4.tcp_available_congestion_control" => return Err("Permission denied"),
            "net.ipv4.tcp_allowed_congestion_control" => self.allow_controls(value)?,
            "net.ipv4.tcp_congestion_control" => self.set_control(value)?,
            "net.ipv4.tcp_sack" => self.sysctl.tcp_sack = number()? != 0,
            "net.ipv4.tcp_timestamps" => {
                self.sysctl.tcp_timestamps = u8::try_from(number()?).ok().ok_or(INVALID)?;
            }
            "net.ipv4.tcp_window_scaling" => self.sysctl.tcp_window_scaling = number()? != 0,
            "net.ipv4.tcp_ecn" => {
                let most = if self.kernel == Kernel::V7_2 { 5 } else { 2 };
                let ecn = u8::try_from(number()?).ok().filter(|&v| v <= most).ok_or(INVALID)?;
                self.sysctl.tcp_ecn = ecn;
            }
            _ if self.netfilter.tracking().setting(key).is_some() => {
                let value = number()?;
                self.netfilter.tracking_mut().set_setting(key, value).ok_or(INVALID)?;
            }
            _ => {
                let begins = self.begins(key).ok_or("No such file or directory")?;
                let parts: Vec<&str> = value.split_whitespace().collect();
                // What begins with text takes text.
                let is_text = |b: &str| b.split('\t').any(|part| part.parse::<u64>().is_err());
                if more::elsewhere(key).is_some() || more::find(key).is_some_and(|k| is_text(k.1)) {
                    self.sysctl.kept.insert(key.to_owned(), parts.join(" "));
                    return Ok(());
                }
                let numbers: Option<Vec<i64>> = parts.iter().map(|p| long(p)).collect();
                //= linux v6.12 net/ipv4/sysctl_net_ipv4.c ipv4_net_table
                let most = match key {
                    "net.ipv4.icmp_echo_ignore_broadcasts" | "net.ipv4.tcp_ecn_fallback" => 1,
                    "net.ipv4.tcp_ecn_option" | "net.ipv4.tcp_ecn_option_beacon" => 3,
                    "net.ipv4.tcp_dsack" | "net.ipv4.tcp_frto" | "net.ipv4.tcp_recovery" => 255,
                    "net.ipv4.tcp_pacing_ca_ratio" | "net.ipv4.tcp_pacing_ss_ratio" => 1_000,
                    "net.ipv4.icmp_msgs_per_sec" | "net.ipv4.icmp_msgs_burst" => i64::from(i32::MAX),
                    _ => i64::MAX,
                };
                if most < i64::MAX
                    && numbers.as_ref().is_some_and(|n| n.iter().any(|n| !(0..=most).contains(n)))
                {
                    return Err(INVALID);
                }
                //= linux v6.12 net/core/sysctl_net_core.c: from SYSCTL_ZERO to SYSCTL_ONE
                if key == "net.core.txrehash" && !matches!(parts[..], ["0" | "1"]) {
                    return Err(INVALID);
                }
                let numbers =
                    numbers.filter(|n| !n.is_empty() && n.len() <= begins.split('\t').count().max(1));
                let numbers = numbers.ok_or(INVALID)?;
                let kept = numbers.iter().map(i64::to_string).collect::<Vec<_>>().join("\t");
                //= linux v6.12 net/ipv4/sysctl_net_ipv4.c ipv4_local_port_range
                let ports = |n: &[i64]| n.len() == 2 && n[0] >= 1024 && n[0] <= n[1] && n[1] <= 65_535;
                if key == "net.ipv4.ip_local_port_range" && !ports(&numbers) {
                    return Err(INVALID);
                }
                self.set_setting6(key, numbers[0], now)?;
                let multipath =
                    [("net.ipv4.", &mut self.fib.multipath), ("net.ipv6.", &mut self.six.fib.multipath)];
                for (folder, multipath) in multipath {
                    if let Some(setting) =
                        key.strip_prefix(folder).filter(|s| s.starts_with("fib_multipath_hash_"))
                    {
                        multipath.set(setting, numbers[0]).ok_or(INVALID)?;
                    }
                }
                if let Some((six, name, of)) = neigh::split(key) {
                    let ifindex = self.ifindex(name).unwrap_or(0);
                    let hz = self.hz;
                    self.neigh.set_setting(six, ifindex, of, numbers[0], hz).ok_or(INVALID)?;
                }
                if let Some((name, attribute)) =
                    key.strip_prefix("net.ipv4.conf.").and_then(|k| k.rsplit_once('.'))
                {
                    self.conf_is_set(key, name, attribute, numbers[0], now);
                }
                self.sysctl.has_valid_marks |= key.ends_with(".src_valid_mark");
                let limits = ["number", "load", "silence"];
                let limit = key.strip_prefix("net.ipv4.route.redirect_");
                if let Some(n) = limits.iter().position(|l| limit == Some(l)) {
                    self.sysctl.redirect_limits[n] = Some(numbers[0]);
                }
                if key == "net.ipv4.route.flush" {
                    self.forget_paths();
                }
                if key == "net.core.netdev_max_backlog" {
                    self.sysctl.max_backlog = numbers[0].clamp(0, 1 << 31) as u32;
                }
                self.sysctl.kept.insert(key.to_owned(), kept);
            }
        }
        Ok(())
    }

    /// `net.ipv4.conf.NAME.send_redirects` and the others of its family.
    fn set_redirects(&mut self, name: &str, attribute: &str, on: bool) {
        let all = match name {
            "all" => Some(&mut self.sysctl.redirects),
            "default" => Some(&mut self.sysctl.redirects_begin),
            _ => None,
        };
        let of_device = self.devices.iter_mut().find(|d| d.name == name).map(|d| &mut d.redirects);
        if let Some(setting) = all.or(of_device).and_then(|r| r.of(attribute)) {
            *setting = on;
        }
    }
    /// `net.ipv4.conf.NAME.rp_filter`: 0 no, 1 strict, anything else loose.
    fn set_rp_filter(&mut self, name: &str, value: i64) {
        let value = u8::try_from(value).unwrap_or(2).min(2);
        match name {
            "all" => self.sysctl.rp_filter = value,
            "default" => self.sysctl.rp_filter_begins = value,
            _ => {
                for device in self.devices.iter_mut().filter(|d| d.name == name) {
                    device.rp_filter = value;
                }
            }
        }
        let of_devices = self.devices.iter().any(|d| d.rp_filter > 0);
        self.sysctl.filters_sources = self.sysctl.rp_filter > 0 || of_devices;
    }
    /// Settings that a command has given another value than they begin with, where on Linux something follows and here nothing does: a sentence
    /// each.
    pub(crate) fn unfollowed_settings(&self) -> Vec<String> {
        let unfollowed = self.sysctl.kept.iter().filter_map(|(key, value)| match keys::follows(key)? {
            Follows::Not(what)
                if self.begins(key).is_some_and(|begins| begins != value)
                    && !keys::is_followed(key, value) =>
            {
                Some(format!("sysctl {key} = {}: not simulated; {what}", value.replace('\t', " ")))
            }
            _ => None,
        });
        unfollowed.collect()
    }

    pub(super) fn sysctl(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let command = match sysctl::parse(&line.words) {
            Ok(command) => command,
            Err(f) => {
                let mut out = Output::fail(f.stderr, f.exit, "sysctl -w net.ipv4.ip_forward=1");
                if f.exit == 0 {
                    out.diagnostics.clear();
                }
                out.stdout = f.stdout;
                return out;
            }
        };
        let mut out = Output::default();
        for request in &command.requests {
            let one = self.sysctl_request(request, &command, files, now);
            out.stdout.push_str(&one.stdout);
            out.stderr.push_str(&one.stderr);
            out.diagnostics.extend(one.diagnostics);
            out.status = out.status.max(one.status);
            if *request == Request::NoValue {
                break;
            }
        }
        out
    }

    fn sysctl_request(
        &mut self,
        request: &Request,
        command: &sysctl::Command,
        files: &mut dyn Files,
        now: Time,
    ) -> Ran {
        // procps 3.2 of 2010 exits with 255.
        let failed = if self.kernel == Kernel::V2_6_35 { 255 } else { 1 };
        let show = |key: &str, value: &str| match command {
            c if c.names_only => format!("{key}\n"),
            c if c.binary => value.to_owned(),
            c if c.values_only => format!("{value}\n"),
            _ => format!("{key} = {value}\n"),
        };
        let meant = |key: &str| command.pattern.as_ref().is_none_or(|p| p.is_in(key));
        let unknown = |key: &str| {
            if command.ignore_unknown {
                return Output::default();
            }
            let path = sysctl::path_of_key(key);
            let stderr = format!("sysctl: cannot stat {path}: No such file or directory\n");
            let known: Vec<&str> = KEYS.iter().map(|k| k.0).collect();
            Output::fail(stderr, failed, &format!("settings here: {}", known.join(" ")))
        };
        match request {
            Request::All => {
                let keys = self.setting_keys();
                let lines = keys
                    .iter()
                    .filter(|key| meant(key))
                    .filter_map(|key| Some(show(key, &self.setting(key)?)));
                Output::say(lines.collect::<String>())
            }
            Request::Read(key) | Request::Write { key, .. } if !meant(key) => Output::default(),
            Request::Read(key) => match self.setting(key) {
                Some(value) => Output::say(show(key, &value)),
                None => {
                    // A folder shows all that is in it.
                    let prefix = format!("{key}.");
                    let keys = self.setting_keys().into_iter().filter(|k| k.starts_with(&prefix));
                    let text: String = keys.filter_map(|k| Some(show(&k, &self.setting(&k)?))).collect();
                    if text.is_empty() { unknown(key) } else { Output::say(text) }
                }
            },
            Request::Write { key, value } => {
                if self.setting(key).is_none() {
                    return unknown(key);
                }
                match self.set_setting(key, value, now) {
                    Ok(()) if command.quiet => Output::default(),
                    Ok(()) => Output::say(show(key, value)),
                    Err(why) => {
                        let stderr = format!("sysctl: setting key \"{key}\": {why}\n");
                        Output::fail(stderr, failed, "")
                    }
                }
            }
            Request::NoValue => {
                let stderr = "sysctl: command line(0): invalid syntax, continuing...\n";
                Output::fail(stderr, failed, "KEY=VALUE")
            }
            Request::Load(file) => {
                let text = match files.read(file) {
                    Ok(text) => text,
                    Err(why) => {
                        return Output::fail(format!("sysctl: cannot open \"{file}\": {why}\n"), failed, "");
                    }
                };
                let mut all = Output::default();
                let (settings, wrong) = sysctl::lines(&text);
                for number in wrong {
                    let said = format!("sysctl: {file}({number}): invalid syntax, continuing...\n");
                    all.stderr.push_str(&said);
                }
                for (key, value, lenient) in settings {
                    let known = self.setting(&key).is_some();
                    let one = self.sysctl_request(&Request::Write { key, value }, command, files, now);
                    all.stdout.push_str(&one.stdout);
                    if !lenient || !known {
                        all.stderr.push_str(&one.stderr);
                        all.diagnostics.extend(one.diagnostics);
                        all.status = all.status.max(one.status);
                    }
                }
                all
            }
        }
    }

    /// `echo 1 > /proc/sys/…`.
    pub(super) fn write_setting(&mut self, path: &str, text: &str, now: Time) -> Ran {
        match self.write_file(path, text, now) {
            Ok(()) => Output::default(),
            Err("No such file or directory") => {
                let help = "files here: those below /proc/sys and /sys/class/net";
                Output::fail(format!("bash: {path}: No such file or directory\n"), 1, help)
            }
            Err("Permission denied") => Output::fail(format!("bash: {path}: Permission denied\n"), 1, ""),
            Err(why) => Output::fail(format!("bash: echo: write error: {why}\n"), 1, ""),
        }
    }

    /// `tee /proc/sys/…`: standard input becomes the setting.
    pub(super) fn tee(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let text = files.read("-").unwrap_or_default();
        let mut out = Output::say(text.clone());
        for word in &line.words[1..] {
            let one = self.write_setting(&word.text, &text, now);
            out.stderr.push_str(
                &one.stderr.replace("bash: echo:", "tee: 'standard output':").replace("bash:", "tee:"),
            );
            out.status = out.status.max(one.status);
        }
        out
    }

    /// `ls -F PATH`: the names in a virtual folder, folders with a slash.
    pub(super) fn ls(&self, line: &Line) -> Ran {
        let path = line.words.last().map_or("", |w| w.text.as_str());
        let Some(names) = self.list_dir(path) else {
            let help = "folders here: those below /proc/sys, /proc/net and /sys/class/net";
            return Output::fail(format!("ls: cannot access '{path}': No such file or directory\n"), 2, help);
        };
        let folder = |name: &str| self.list_dir(&format!("{path}/{name}")).is_some();
        Output::say(
            names.iter().map(|n| format!("{n}{}\n", if folder(n) { "/" } else { "" })).collect::<String>(),
        )
    }

    pub(super) fn cat(&mut self, line: &Line, now: Time) -> Ran {
        let mut out = Output::default();
        for word in &line.words[1..] {
            match self.read_file_at(&word.text, now) {
                Ok(text) => out.stdout.push_str(&text),
                Err(why) => {
                    let stderr = format!("cat: {}: {why}\n", word.text);
                    let help = "files here: those below /proc/sys, /proc/net and /sys/class/net";
                    let one = Output::fail(stderr, 1, help);
                    out.stderr.push_str(&one.stderr);
                    out.diagnostics.extend(one.diagnostics);
                    out.status = 1;
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests;
