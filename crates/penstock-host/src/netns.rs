//! Network namespaces: several hosts in one machine.
//!
//! Each namespace is a [`Host`]; the one that runs a command holds all the others, so that entering another is an exchange
//! of the two. What is global in Linux (the counter of qdisc handles, the hardware's cards) goes with whoever runs. Whoever carries packets
//! between namespaces takes the others out ([`Host::take_spaces`]) and drives each as a machine of its own, but for commands, for which it gives
//! them back.
//!
//! Follows: linux v6.12 `net/core/net_namespace.c` (`peernet2id_alloc`, `cleanup_net`), `net/core/dev.c`
//! `__dev_change_net_namespace`, `default_device_exit_net`.
//! Differs: a namespace that is deleted loses its devices at once, whoever still has a socket in it. A new one begins with none of the settings of another, as where the machine
//! is a namespace itself (on real kernels it is); of the first of all Linux takes over `net.ipv4.conf.all` and `default` (`devinet_init_net`).

use crate::device::Lower;
use crate::{Host, Output};
use penstock_model::{KernelError, Time};

/// The namespaces a machine has besides the one that runs.
#[derive(Default)]
pub(crate) struct Spaces {
    pub(crate) hosts: Vec<Host>,
    /// Names and numbers, the youngest first.
    names: Vec<(String, u32)>,
    last: u32,
}

impl Host {
    /// The names of this machine's network namespaces (`ip netns add`), the youngest first.
    pub fn netns_names(&self) -> Vec<&str> {
        self.spaces.names.iter().map(|(name, _)| name.as_str()).collect()
    }
    /// A namespace by its name; `None` where it is not there.
    pub fn netns(&self, name: &str) -> Option<&Host> {
        self.space_of(name).and_then(|space| self.space_ref(space))
    }
    /// Enters a namespace by its name, does `work` there, and comes back. `None` where it is not there.
    pub fn in_netns<T>(&mut self, name: &str, work: impl FnOnce(&mut Host) -> T) -> Option<T> {
        self.space_of(name).and_then(|space| self.in_space(space, work))
    }
    pub(crate) fn space_of(&self, name: &str) -> Option<u32> {
        self.spaces.names.iter().find(|n| n.0 == name).map(|n| n.1)
    }
    /// The name of a namespace, where it has one.
    pub(crate) fn space_name(&self, space: u32) -> Option<&str> {
        self.spaces.names.iter().find(|n| n.1 == space).map(|n| n.0.as_str())
    }
    pub(crate) fn space_ref(&self, space: u32) -> Option<&Host> {
        if space == self.space { Some(self) } else { self.spaces.hosts.iter().find(|h| h.space == space) }
    }
    /// All namespaces by number, this one included.
    pub(crate) fn space_ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.spaces.hosts.iter().map(|h| h.space).chain([self.space]).collect();
        ids.sort_unstable();
        ids
    }
    /// The number of this network namespace; 0 is the machine's first.
    pub fn space(&self) -> u32 {
        self.space
    }
    /// Whether the machine has, or has had, other network namespaces than this one.
    pub fn has_spaces(&self) -> bool {
        self.spaces.last > 0
    }
    /// Takes all other network namespaces out, those that were deleted too, of which `lo` is left. They are found there again when they are given
    /// back ([`Host::give_space`]) before the next command.
    pub fn take_spaces(&mut self) -> Vec<Host> {
        std::mem::take(&mut self.spaces.hosts)
    }
    /// Gives one of these back.
    pub fn give_space(&mut self, host: Host) {
        self.spaces.hosts.push(host);
    }
    /// The number of the network namespace of this name.
    pub fn space_called(&self, name: &str) -> Option<u32> {
        self.space_of(name)
    }
    /// The name of one of its network namespaces.
    pub fn name_of_space(&self, space: u32) -> Option<&str> {
        self.space_name(space)
    }
    /// Enters a namespace by its number, does `work` there, and comes back. `None` where it is not there.
    pub fn in_space<T>(&mut self, space: u32, work: impl FnOnce(&mut Host) -> T) -> Option<T> {
        if space == self.space {
            return Some(work(self));
        }
        let home = self.space;
        self.enter(space)?;
        let result = work(self);
        // Another namespace's devices may be what has changed.
        self.tell_ports();
        self.enter(home);
        Some(result)
    }
    fn enter(&mut self, space: u32) -> Option<()> {
        let at = self.spaces.hosts.iter().position(|h| h.space == space)?;
        let mut spaces = std::mem::take(&mut self.spaces);
        let handle = self.auto_handle;
        std::mem::swap(self, &mut spaces.hosts[at]);
        self.auto_handle = handle;
        self.default_qdisc = spaces.hosts[at].default_qdisc;
        self.spaces = spaces;
        Some(())
    }
    /// Runs a command line in the namespace called `netns`: `ip netns exec NETNS LINE`.
    pub fn exec_in(&mut self, netns: &str, line: &str, now: Time) -> Output {
        let run = |host: &mut Host| host.exec(line, now);
        match self.space_of(netns).and_then(|space| self.in_space(space, run)) {
            Some(output) => output,
            None => Output::fail(no_space(netns), 255, "ip netns lists the namespaces there are"),
        }
    }

    /// Makes a namespace; `false` where the name is taken.
    pub(crate) fn add_space(&mut self, name: &str) -> bool {
        if self.space_of(name).is_some() {
            return false;
        }
        self.spaces.last += 1;
        let mut host = Host::bare(&self.name, self.kernel, self.seed, self.spaces.last);
        host.default_qdisc = self.default_qdisc;
        (host.clock, host.hz) = (self.clock, self.hz);
        host.sysctl.inherit(&self.sysctl);
        host.six.asks = self.six.asks;
        host.six.on = self.six.asks;
        host.new_device("lo", "loopback", None);
        self.spaces.names.insert(0, (name.to_owned(), host.space));
        self.spaces.hosts.push(host);
        true
    }
    /// Deletes a namespace with its devices; cards go back to the first one. `false` where it is not there, or runs.
    pub(crate) fn delete_space(&mut self, name: &str, now: Time) -> bool {
        let Some(space) = self.space_of(name) else { return false };
        self.spaces.names.retain(|n| n.0 != name);
        if space == self.space {
            // It lives on without a name until whoever runs in it leaves.
            return true;
        }
        let devices: Vec<u32> = self
            .in_space(space, |host| host.devices.iter().filter(|d| !d.loopback).map(|d| d.ifindex).collect())
            .unwrap_or_default();
        for ifindex in devices {
            self.in_space(space, |host| {
                if host.devices.get(ifindex).is_some_and(|d| d.class.kind.is_empty()) {
                    let _ = host.move_link(ifindex, 0, now);
                } else {
                    host.delete_link(ifindex, now);
                }
            });
        }
        self.in_space(space, |host| host.set_up(1, false, now));
        self.forget_space_numbers(space);
        true
    }
    fn forget_space_numbers(&mut self, gone: u32) {
        for space in self.space_ids() {
            self.in_space(space, |host| host.space_numbers.retain(|n| n.0 != gone));
        }
    }

    /// The number another namespace has here, given now where it has none (`peernet2id_alloc`).
    pub(crate) fn space_number(&mut self, space: u32) -> i32 {
        if let Some(known) = self.space_numbers.iter().find(|n| n.0 == space) {
            return known.1;
        }
        let free = (0..).find(|id| self.space_numbers.iter().all(|n| n.1 != *id)).unwrap_or(0);
        self.space_numbers.push((space, free));
        free
    }

    /// Moves a device to another namespace. It is down there, without addresses; it keeps its index where that is free.
    ///
    /// # Errors
    /// EEXIST where the name is taken there, EINVAL for `lo`.
    pub(crate) fn move_link(&mut self, ifindex: u32, space: u32, now: Time) -> Result<(), KernelError> {
        if space == self.space {
            return Ok(());
        }
        let Some(device) = self.devices.get(ifindex) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        if device.loopback {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let name = device.name.clone();
        match self.space_ref(space) {
            None => return Err(KernelError::errno(KernelError::EINVAL)),
            Some(there) if there.ifindex(&name).is_some() => {
                return Err(KernelError::errno(KernelError::EEXIST));
            }
            Some(_) => {}
        }
        let home = self.space;
        let lower = device.lower;
        // A device to come of this name has another hardware address: this one keeps its own.
        *self.gone_names.entry(name.clone()).or_default() += 1;
        let Some(mut device) = self.detach(ifindex, now) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        device.addresses.clear();
        device.networks.clear();
        device.addresses6.clear();
        device.master = None;
        let index = self.in_space(space, |there| {
            let mut device = device;
            there.conf_begins(&mut device);
            device.tree.share_blocks(&there.blocks);
            let index = there.devices.insert(device, Some(ifindex));
            if let Some(lower) = lower.filter(|lower| lower.space != there.space) {
                there.space_number(lower.space);
            }
            let Host { devices, drops, acts, kernel, .. } = &mut *there;
            devices[index].refresh_tree(*kernel, now, drops, acts);
            there.rebind_rules();
            there.groups_begin(index);
            index
        });
        // Whoever pointed here points there now.
        let (old, new) = (Lower { space: home, ifindex }, Lower { space, ifindex: index.unwrap_or(ifindex) });
        for id in self.space_ids() {
            self.in_space(id, |host| {
                let mut pointing = false;
                for d in host.devices.iter_mut().filter(|d| d.lower == Some(old)) {
                    d.lower = Some(new);
                    pointing = true;
                }
                if pointing && id != space {
                    host.space_number(space);
                }
            });
        }
        Ok(())
    }
}

/// What ip says of a namespace that is not there.
pub(crate) fn no_space(name: &str) -> String {
    format!("Cannot open network namespace \"{name}\": No such file or directory\n")
}
