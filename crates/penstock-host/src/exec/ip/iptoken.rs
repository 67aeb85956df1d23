//! `ip token`.
//!
//! Follows: linux v6.12 `net/ipv6/addrconf.c` `inet6_set_iftoken`.

use super::{Done, says};
use crate::Host;
use crate::device::NOARP;
use penstock_lang::ip::{self, Failure, Form, TokenSet};
use penstock_model::{KernelError, Time};

fn refused(sentence: &str) -> Failure {
    ip::refused(&KernelError::new(KernelError::EINVAL, sentence))
}

impl Host {
    fn token_dev(&self, name: &str) -> Result<u32, Failure> {
        let wrong = || says(255, format!("Error: argument \"{name}\" is wrong: dev is invalid\n"));
        self.ifindex(name).ok_or_else(wrong)
    }
    pub(super) fn token_set(&mut self, set: &TokenSet, now: Time) -> Done {
        let ifindex = self.token_dev(&set.dev)?;
        let device = &mut self.devices[ifindex];
        let conf = device.six.conf;
        if device.mtu < crate::six::MIN_MTU {
            return Err(super::errno(97));
        }
        if device.loopback {
            return Err(refused("ipv6: Device is loopback"));
        }
        if device.flags & NOARP != 0 {
            return Err(refused("ipv6: Device does not do neighbour discovery"));
        }
        if !conf.accepts_ra() {
            return Err(refused("ipv6: Router advertisement is disabled on device"));
        }
        if !conf.asks_routers() {
            return Err(refused("Router solicitation is disabled on device"));
        }
        device.six.token = u128::from(set.token) as u64;
        // Those that end otherwise are over.
        for a in device.addresses6.iter_mut().filter(|a| a.tokenized) {
            a.lifetime.seconds = (0, 0);
        }
        if device.six.token != 0 {
            self.ask_routers(ifindex, now);
        }
        self.watch_lifetimes(true, now);
        Ok(String::new())
    }
    pub(super) fn token_show(&self, dev: Option<&str>, form: Form) -> Done {
        let only = dev.map(|name| self.token_dev(name)).transpose()?;
        let all: Vec<_> = self
            .devices
            .iter()
            .filter(|d| only.is_none_or(|i| i == d.ifindex))
            .filter(|d| !d.loopback && d.flags & NOARP == 0 && d.mtu >= crate::six::MIN_MTU)
            .map(|d| (d.name.as_str(), u128::from(d.six.token).into()))
            .collect();
        Ok(ip::tokens(&all, form, self.kernel))
    }
}
