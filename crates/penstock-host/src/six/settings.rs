//! `net.ipv6.conf.*`: what a command asks for and sets.
//!
//! Follows: linux v6.12 `net/ipv6/addrconf.c` `addrconf_sysctl_forward`, `addrconf_sysctl_disable`, `addrconf_sysctl_addr_gen_mode`.

use super::{GenMode, MIN_MTU};
use crate::Host;
use penstock_model::Time;

/// A number of any size that fits.
const INT: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
const FLAG: (i64, i64) = (0, 1);

/// The settings of a device about routers: names, what they begin with, and their bounds.
//= linux v6.12 net/ipv6/addrconf.c ipv6_devconf_dflt, addrconf_sysctl
const ABOUT_ROUTERS: [(&str, i64, (i64, i64)); Ra::COUNT] = [
    ("accept_ra", 1, INT),
    ("accept_ra_defrtr", 1, INT),
    ("accept_ra_from_local", 0, INT),
    ("accept_ra_min_hop_limit", 1, INT),
    ("accept_ra_min_lft", 0, INT),
    ("accept_ra_mtu", 1, INT),
    ("accept_ra_pinfo", 1, INT),
    ("accept_ra_rt_info_max_plen", 0, INT),
    ("accept_ra_rt_info_min_plen", 0, INT),
    ("accept_ra_rtr_pref", 1, INT),
    ("autoconf", 1, INT),
    ("max_addresses", 16, INT),
    ("ra_defrtr_metric", 1024, (1, u32::MAX as i64)),
    ("ra_honor_pio_life", 0, FLAG),
    ("ra_honor_pio_pflag", 0, FLAG),
    // Seconds.
    ("router_solicitation_delay", 1, INT),
    ("router_solicitation_interval", 4, INT),
    ("router_solicitation_max_interval", 3600, INT),
    // -1: for as long as none answers.
    ("router_solicitations", -1, (-1, i32::MAX as i64)),
];

/// What a device makes of routers' words, and how it asks for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ra([u32; Ra::COUNT]);

impl Ra {
    const COUNT: usize = 19;
    pub(crate) const ACCEPT: usize = 0;
    pub(crate) const DEFRTR: usize = 1;
    pub(crate) const FROM_LOCAL: usize = 2;
    pub(crate) const MIN_HOP_LIMIT: usize = 3;
    pub(crate) const MIN_LFT: usize = 4;
    pub(crate) const MTU: usize = 5;
    pub(crate) const PINFO: usize = 6;
    pub(crate) const RT_INFO_MAX_PLEN: usize = 7;
    pub(crate) const RT_INFO_MIN_PLEN: usize = 8;
    pub(crate) const RTR_PREF: usize = 9;
    pub(crate) const AUTOCONF: usize = 10;
    pub(crate) const MAX_ADDRESSES: usize = 11;
    pub(crate) const DEFRTR_METRIC: usize = 12;
    pub(crate) const HONOR_PIO_LIFE: usize = 13;
    pub(crate) const HONOR_PIO_PFLAG: usize = 14;
    pub(crate) const DELAY: usize = 15;
    pub(crate) const INTERVAL: usize = 16;
    pub(crate) const MAX_INTERVAL: usize = 17;
    pub(crate) const SOLICITATIONS: usize = 18;
    /// As the kernel begins.
    pub(crate) const BEGINS: Ra = {
        let mut all = [0; Ra::COUNT];
        let mut at = 0;
        while at < Ra::COUNT {
            all[at] = ABOUT_ROUTERS[at].1 as u32;
            at += 1;
        }
        Ra(all)
    };

    /// One of them. The metric alone may be larger than `i32::MAX`.
    pub(crate) fn of(&self, which: usize) -> i64 {
        let value = self.0[which];
        if which == Ra::DEFRTR_METRIC { value.into() } else { i64::from(value as i32) }
    }
    fn set(&mut self, which: usize, value: i64) {
        self.0[which] = value as u32;
    }
    fn called(name: &str) -> Option<usize> {
        ABOUT_ROUTERS.iter().position(|s| s.0 == name)
    }
}

/// The device (or `all`, `default`) and the setting that a key names.
fn split(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix("net.ipv6.conf.")?.rsplit_once('.')
}

impl Host {
    /// A setting that packets hang on; `None` for one that is kept as text.
    pub(crate) fn setting6(&self, key: &str) -> Option<i64> {
        let (name, of) = split(key)?;
        let conf = match name {
            "all" => {
                return match of {
                    "forwarding" => Some(self.six.forwarding.into()),
                    "keep_addr_on_down" => Some(self.six.keep_all.into()),
                    _ => None,
                };
            }
            "default" => self.six.begins,
            _ => self.devices.iter().find(|d| d.name == name)?.six.conf,
        };
        Some(match of {
            "forwarding" => conf.forwarding.into(),
            "disable_ipv6" => conf.disabled.into(),
            "hop_limit" => conf.hop_limit.into(),
            "addr_gen_mode" => conf.addr_gen_mode.number().into(),
            "keep_addr_on_down" => conf.keep_addr_on_down.into(),
            "mtu" => {
                let device = self.devices.iter().find(|d| d.name == name)?;
                device.mtu6().into()
            }
            _ => conf.ra.of(Ra::called(of)?),
        })
    }
    /// Sets one; others are left to whoever keeps them.
    pub(crate) fn set_setting6(&mut self, key: &str, value: i64, now: Time) -> Result<(), &'static str> {
        const INVALID: &str = "Invalid argument";
        let Some((name, of)) = split(key) else { return self.check_frag6(key, value).ok_or(INVALID) };
        let (on, all) = (value != 0, name == "all");
        if let Some(which) = Ra::called(of) {
            let (least, most) = ABOUT_ROUTERS[which].2;
            if !(least..=most).contains(&value) {
                return Err(INVALID);
            }
            // `all` is a value of its own, which nothing follows from.
            if name == "default" {
                self.six.begins.ra.set(which, value);
            }
            for device in self.devices.iter_mut().filter(|d| d.name == name) {
                device.six.conf.ra.set(which, value);
            }
            return Ok(());
        }
        if of == "mtu" {
            let device = self.devices.iter_mut().find(|d| d.name == name);
            let most = device.as_ref().map_or(INT.1, |d| d.mtu.into());
            if !(i64::from(MIN_MTU)..=most).contains(&value) {
                return Err(INVALID);
            }
            if let Some(device) = device {
                device.six.conf.mtu = value as u32;
                self.six.fib.invalidate();
            }
            return Ok(());
        }
        match of {
            "forwarding" if all => {
                self.set_forwarding6(on);
                if on {
                    self.forget_routers();
                }
                return Ok(());
            }
            "keep_addr_on_down" if all => {
                self.six.keep_all = on;
                return Ok(());
            }
            // Of these `all` is a value of its own, which nothing follows from.
            "hop_limit" if all => return Ok(()),
            "hop_limit" if !(1..=255).contains(&value) => return Err(INVALID),
            "forwarding" | "disable_ipv6" | "hop_limit" | "addr_gen_mode" | "keep_addr_on_down" => {}
            _ => return Ok(()),
        }
        let mode = GenMode::of(u8::try_from(value).unwrap_or(u8::MAX));
        if of == "addr_gen_mode" && mode.is_none() {
            return Err(INVALID);
        }
        let mode = mode.unwrap_or(GenMode::None);
        if all || name == "default" {
            let begins = &mut self.six.begins;
            match of {
                "forwarding" => begins.forwarding = on,
                "disable_ipv6" => begins.disabled = on,
                "hop_limit" => begins.hop_limit = value as u8,
                "addr_gen_mode" => begins.addr_gen_mode = mode,
                _ => begins.keep_addr_on_down = on,
            }
        }
        let meant: Vec<u32> =
            self.devices.iter().filter(|d| all || d.name == name).map(|d| d.ifindex).collect();
        for ifindex in meant {
            match of {
                "forwarding" => self.set_six_router(ifindex, on),
                "disable_ipv6" => self.set_six_disabled(ifindex, on, now),
                "addr_gen_mode" => self.set_addr_gen_mode(ifindex, mode),
                "hop_limit" => self.devices[ifindex].six.conf.hop_limit = value as u8,
                _ => self.devices[ifindex].six.conf.keep_addr_on_down = on,
            }
        }
        if of == "forwarding" && on && name != "default" {
            self.forget_routers();
        }
        Ok(())
    }
    /// The bounds on fragments: the lower one is no higher than the upper, and no time is less than none; `None` for what is refused.
    //= linux v6.12 net/ipv6/reassembly.c ip6_frags_ns_ctl_table, net/ipv6/netfilter/nf_conntrack_reasm.c nf_ct_frag6_sysctl_table
    fn check_frag6(&self, key: &str, value: i64) -> Option<()> {
        let kept = |key: &str, begins: i64| {
            self.sysctl.kept.get(key).and_then(|s| s.parse::<i64>().ok()).unwrap_or(begins)
        };
        let fits = match key {
            "net.ipv6.ip6frag_high_thresh" => value >= kept("net.ipv6.ip6frag_low_thresh", 3_145_728),
            "net.ipv6.ip6frag_low_thresh" => {
                (0..=kept("net.ipv6.ip6frag_high_thresh", 4_194_304)).contains(&value)
            }
            "net.netfilter.nf_conntrack_frag6_high_thresh" => {
                value >= kept("net.netfilter.nf_conntrack_frag6_low_thresh", 3_145_728)
            }
            "net.netfilter.nf_conntrack_frag6_low_thresh" => {
                (0..=kept("net.netfilter.nf_conntrack_frag6_high_thresh", 4_194_304)).contains(&value)
            }
            "net.ipv6.ip6frag_time" | "net.netfilter.nf_conntrack_frag6_timeout" => value >= 0,
            _ => true,
        };
        fits.then_some(())
    }
}
