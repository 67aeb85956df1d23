//! `net.ipv6.conf.*`: what a command asks for and sets.
//!
//! Follows: linux v6.12 `net/ipv6/addrconf.c` `addrconf_sysctl_forward`, `addrconf_sysctl_disable`, `addrconf_sysctl_addr_gen_mode`.

use super::GenMode;
use crate::Host;

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
            _ => return None,
        })
    }
    /// Sets one; others are left to whoever keeps them.
    pub(crate) fn set_setting6(&mut self, key: &str, value: i64) -> Result<(), &'static str> {
        const INVALID: &str = "Invalid argument";
        let Some((name, of)) = split(key) else { return self.check_frag6(key, value).ok_or(INVALID) };
        let (on, all) = (value != 0, name == "all");
        match of {
            "forwarding" if all => {
                self.set_forwarding6(on);
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
                "disable_ipv6" => self.set_six_disabled(ifindex, on),
                "addr_gen_mode" => self.set_addr_gen_mode(ifindex, mode),
                "hop_limit" => self.devices[ifindex].six.conf.hop_limit = value as u8,
                _ => self.devices[ifindex].six.conf.keep_addr_on_down = on,
            }
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
