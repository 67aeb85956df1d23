//! `ip ntable`.
//!
//! Follows: linux v6.12 `net/core/neighbour.c` `neightbl_dump_info`, `neightbl_fill_info`, `neightbl_fill_parms`, `neightbl_set`.
//! Differs: of what a table counts, entries that were made and are gone are counted, the rest is 0.

use super::{Done, errno, says};
use crate::Host;
use crate::neigh::Parm;
use crate::six::MIN_MTU;
use penstock_lang::ip::{self, Family, Form, NtableChange, NtableConfig, NtableFilter, NtableView};
use penstock_model::{EPOCH, KernelError, Time};

/// `%Y-%m-%d %T` of seconds since 1970.
fn date(seconds: i64) -> String {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 0000-03-01, by eras of 400 years; a year begins in March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + later;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

impl Host {
    pub(super) fn ntable_show(&mut self, filter: &NtableFilter, form: Form, now: Time) -> Done {
        let only = match filter.dev.as_deref() {
            // `none`: no device has that index.
            Some("") => Some(0),
            Some(name) => Some(self.ifindex(name).ok_or_else(|| {
                says(255, format!("Error: argument \"{name}\" is wrong: \"DEV\" is invalid"))
            })?),
            None => None,
        };
        let mut all = Vec::new();
        for six in [false, true] {
            let (name, other) =
                if six { ("ndisc_cache", Family::Inet) } else { ("arp_cache", Family::Inet6) };
            if form.family == other
                || !matches!(form.family, Family::Any | Family::Inet | Family::Inet6)
                || filter.name.as_deref().is_some_and(|n| n != name)
            {
                continue;
            }
            // The table's own first, then the devices', the newest first.
            let mut devices: Vec<(u32, String)> = self
                .devices
                .by_age()
                .into_iter()
                .rev()
                .filter(|d| !six || d.mtu >= MIN_MTU)
                .map(|d| (d.ifindex, d.name.clone()))
                .collect();
            devices.insert(0, (0, String::new()));
            for (ifindex, name) in devices {
                if only.is_none_or(|i| i == ifindex) {
                    all.push(self.ntable_view(six, ifindex, name, now));
                }
            }
        }
        Ok(ip::ntables(&all, form, self.kernel))
    }
    fn ntable_view(&mut self, six: bool, ifindex: u32, name: String, now: Time) -> NtableView {
        let reachable = self.neigh.reachable_time(six, ifindex, now) * 1_000 / i64::from(self.kernel.hz());
        let neighbours =
            self.neigh.iter().filter(|n| n.ifindex == ifindex && n.addr.is_ipv6() == six).count();
        let parm = |which| self.neigh.parm(six, ifindex, which);
        let queue = {
            let family = if six { "ipv6" } else { "ipv4" };
            let of = if ifindex == 0 { "default" } else { &name };
            let value = self.setting(&format!("net.{family}.neigh.{of}.unres_qlen"));
            value.and_then(|v| v.parse().ok()).unwrap_or(0)
        };
        let parms = [
            1 + neighbours as i64,
            reachable,
            parm(Parm::Reachable),
            parm(Parm::Retrans),
            parm(Parm::Stale),
            parm(Parm::Delay),
            queue,
            parm(Parm::App),
            parm(Parm::Ucast),
            parm(Parm::Mcast),
            parm(Parm::Anycast),
            parm(Parm::ProxyDelay),
            parm(Parm::ProxyQueue),
            parm(Parm::Lock),
        ];
        NtableView {
            six,
            config: (ifindex == 0).then(|| self.ntable_config(six)),
            dev: (ifindex > 0).then_some(name),
            parms: parms.map(|n| n.max(0) as u64),
        }
    }
    fn ntable_config(&self, six: bool) -> NtableConfig {
        let family = if six { "ipv6" } else { "ipv4" };
        let limit = |name: &str| {
            let value = self.setting(&format!("net.{family}.neigh.default.{name}"));
            value.and_then(|v| v.parse::<u64>().ok()).unwrap_or(0)
        };
        let (made, gone, drawn) = self.neigh.counts(six);
        let entries = (made - gone) as u32;
        // It begins with 8 places, and has twice as many when there are more entries (neigh_hash_grow).
        let places = entries.next_power_of_two().max(8);
        let drawn = EPOCH + drawn / i64::from(self.kernel.hz());
        let mut stats = [0; 11];
        (stats[0], stats[1], stats[2]) = (made, gone, u64::from(places.trailing_zeros() - 3));
        NtableConfig {
            limits: [
                limit("gc_thresh1"),
                limit("gc_thresh2"),
                limit("gc_thresh3"),
                limit("gc_interval") * 1_000,
            ],
            sizes: if six { (16, 360) } else { (4, 352) },
            entries,
            dates: (date(EPOCH), date(drawn)),
            hash: (self.seed as u32, places - 1),
            stats,
        }
    }

    pub(super) fn ntable_change(&mut self, change: &NtableChange) -> Done {
        let ifindex = match change.dev.as_deref() {
            None => 0,
            Some(name) => self.dev(name)?,
        };
        if let Some(refused) = &change.refused {
            return Err(refused.clone());
        }
        let six = match (change.name.as_str(), change.family) {
            ("arp_cache", Family::Any | Family::Inet) => false,
            ("ndisc_cache", Family::Any | Family::Inet6) => true,
            _ => return Err(errno(KernelError::ENOENT)),
        };
        if six && self.device(ifindex).is_some_and(|d| d.mtu < MIN_MTU) {
            return Err(errno(KernelError::ENOENT));
        }
        let there: Vec<u32> = self.devices.iter().map(|d| d.ifindex).collect();
        for (name, value) in &change.parms {
            self.neigh.change(six, ifindex, name, *value, &there);
        }
        //= linux v6.12 net/core/neighbour.c neightbl_set: the table is one for all namespaces, and the first one's to change
        if !change.table.is_empty() && self.space != 0 {
            return Err(errno(KernelError::ENOENT));
        }
        let family = if six { "ipv6" } else { "ipv4" };
        for (name, value) in &change.table {
            let (key, value) = match *name {
                "gc_int" => ("gc_interval", value / 1_000),
                "thresh1" => ("gc_thresh1", *value),
                "thresh2" => ("gc_thresh2", *value),
                _ => ("gc_thresh3", *value),
            };
            self.sysctl.kept.insert(format!("net.{family}.neigh.default.{key}"), value.to_string());
        }
        Ok(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Kernel;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, want) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_868_799, "2000-02-29 23:59:59"),
            (1_700_000_000, "2023-11-14 22:13:20"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(date(seconds), want);
        }
    }

    #[test]
    fn a_change_is_of_a_device_or_of_those_to_come() {
        let mut host = Host::new("a", Kernel::V6_12, 1);
        let mut said = |line: &str| {
            let said = host.exec(line, Time::ZERO);
            (said.stdout, said.stderr)
        };
        said("ip link add d0 type dummy");
        assert_eq!(said("ip ntable change name arp_cache dev d0 retrans 501 locktime 15").1, "");
        assert_eq!(said("ip ntable change name arp_cache retrans 2000 queue 50").1, "");
        said("ip link add d1 type dummy");
        for (dev, of) in [
            ("d0", ["retrans 504 ", "locktime 16 ", "queue 101 "]),
            ("d1", ["retrans 2000 ", "locktime 1000 ", "queue 50 "]),
        ] {
            let shown = said(&format!("ip -4 ntable show dev {dev}")).0;
            for word in of {
                assert!(shown.contains(word), "{word}: {shown}");
            }
        }
        assert_eq!(said("ip ntable change name arp_cache thresh1 9").1, "");
        assert!(
            said("ip ntable show name arp_cache dev none")
                .0
                .starts_with("inet arp_cache \n    thresh1 9 thresh2 512 thresh3 1024 gc_int 30000 \n")
        );
        assert_eq!(
            said("ip ntable change name nosuch retrans 5").1,
            "RTNETLINK answers: No such file or directory\n"
        );
        assert_eq!(said("sysctl net.ipv4.neigh.d0.locktime").0, "net.ipv4.neigh.d0.locktime = 1\n");
    }
}
