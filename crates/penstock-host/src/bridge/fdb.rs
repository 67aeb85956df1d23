//! Who is behind which port of a bridge.
//!
//! Follows: linux v6.12 `net/bridge/br_fdb.c` `br_fdb_update`, `fdb_add_local`, `fdb_delete_local`, `br_fdb_delete_by_port`, `br_fdb_changeaddr`,
//! `br_fdb_change_mac_address`, `fdb_add_entry`, `fdb_delete_by_addr_and_port`, `br_fdb_dump`; v2.6.35 the same file.
//! Differs: what has aged is gone at that nanosecond, not when the work queue comes by.

use super::{Bridge, Mac};
use crate::Host;
use penstock_model::{KernelError, Span, Time};

/// An address in a VLAN: 0, where the bridge looks at none.
pub(super) type Key = u64;

/// The address in the upper 48 bits, the VLAN in the lower 16.
#[inline]
fn key(mac: Mac, vid: u16) -> Key {
    let mac = mac.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    mac << 16 | u64::from(vid)
}
fn parts(key: Key) -> (Mac, u16) {
    let bytes = key.to_be_bytes();
    ([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]], key as u16)
}

/// Where an address is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// The port; `None` for the bridge's own address.
    pub port: Option<u32>,
    /// An address of the machine: its frames go up.
    pub local: bool,
    /// It does not age (`BR_FDB_STATIC`).
    stays: bool,
    /// A command has said so (`BR_FDB_ADDED_BY_USER`).
    by_user: bool,
    /// When a frame of it was last seen.
    updated: Time,
    /// Place among all by age.
    made: u64,
}

impl Entry {
    fn new(port: Option<u32>, updated: Time) -> Entry {
        Entry { port, local: false, stays: false, by_user: false, updated, made: 0 }
    }
}

/// An entry as it is shown.
pub(crate) struct Heard {
    /// Address.
    pub mac: Mac,
    /// VLAN; 0: none.
    pub vid: u16,
    /// The port; `None`: the bridge itself.
    pub port: Option<u32>,
    /// Whether it is the machine's.
    pub local: bool,
    /// Whether it does not age.
    pub stays: bool,
    /// Since when nothing was heard of it.
    pub age: Span,
}

/// The addresses of a bridge and its ports.
pub(super) struct Macs {
    /// The bridge's own.
    pub own: Mac,
    /// The ports', the newest first.
    pub ports: Vec<(u32, Mac)>,
}

impl Macs {
    /// That of a port, or of the bridge.
    pub(super) fn of(&self, port: Option<u32>) -> Mac {
        let there = port.and_then(|port| self.ports.iter().find(|p| p.0 == port));
        there.map_or(self.own, |p| p.1)
    }
}

impl Bridge {
    /// Forgets who was heard: behind a port, or behind all.
    pub(crate) fn flush(&mut self, port: Option<u32>) {
        self.fdb.retain(|_, e| e.stays || port.is_some() && e.port != port);
    }
    /// What is known of an address, where it has not aged.
    pub(super) fn find(&mut self, mac: Mac, vid: u16, now: Time) -> Option<Entry> {
        let key = key(mac, vid);
        let entry = *self.fdb.get(&key)?;
        if self.has_aged(&entry, now) {
            self.fdb.remove(&key);
            return None;
        }
        Some(entry)
    }
    fn has_aged(&self, entry: &Entry, now: Time) -> bool {
        !entry.stays && entry.updated + self.ageing_now() <= now
    }
    /// How long who is not heard is remembered now: less while a spanning tree's topology changes (`__br_set_topology_change`).
    fn ageing_now(&self) -> Span {
        self.tree.as_ref().and_then(|tree| tree.ageing).unwrap_or(self.ageing)
    }
    /// `br_fdb_update`.
    pub(super) fn learn(&mut self, mac: Mac, vid: u16, port: u32, now: Time) {
        if self.ageing_now() == Span::ZERO {
            return;
        }
        let key = key(mac, vid);
        match self.fdb.get_mut(&key) {
            Some(known) if known.local => {}
            Some(known) => (known.port, known.updated) = (Some(port), now),
            None => self.add(key, Entry::new(Some(port), now)),
        }
    }
    fn add(&mut self, key: Key, entry: Entry) {
        self.made += 1;
        self.fdb.insert(key, Entry { made: self.made, ..entry });
    }
    /// `fdb_add_local`: of several with one address the first has it.
    pub(super) fn add_local(&mut self, mac: Mac, vid: u16, port: Option<u32>, now: Time) {
        let key = key(mac, vid);
        if mac != [0; 6] && mac[0] & 1 == 0 && !self.fdb.get(&key).is_some_and(|e| e.local) {
            self.add(key, Entry { local: true, stays: true, ..Entry::new(port, now) });
        }
    }
    /// `br_fdb_find_delete_local`.
    pub(super) fn delete_local(&mut self, mac: Mac, vid: u16, port: Option<u32>, macs: &Macs) {
        let key = key(mac, vid);
        if self.fdb.get(&key).is_some_and(|e| e.local && !e.by_user && e.port == port) {
            self.fdb_delete_local(key, port, macs);
        }
    }
    /// An address of a port is its no more: another that has it too keeps it, else it is gone.
    fn fdb_delete_local(&mut self, key: Key, port: Option<u32>, macs: &Macs) {
        let (mac, vid) = parts(key);
        let other = self.ports.iter().find(|p| {
            Some(p.ifindex) != port && macs.of(Some(p.ifindex)) == mac && (vid == 0 || p.vlans.has(vid))
        });
        let to = match other {
            Some(other) => Some(Some(other.ifindex)),
            None => {
                let own = port.is_some() && macs.own == mac && (vid == 0 || self.vlan.own.has(vid));
                own.then_some(None)
            }
        };
        match to {
            Some(to) => {
                if let Some(e) = self.fdb.get_mut(&key) {
                    (e.port, e.by_user) = (to, false);
                }
            }
            None => {
                self.fdb.remove(&key);
            }
        }
    }
    /// `br_fdb_delete_by_port`: forgets who was behind a port, in a VLAN (0: in all); `all`: what stays, too.
    pub(super) fn forget(&mut self, port: Option<u32>, vid: u16, all: bool, macs: &Macs) {
        let goes = |(key, e): (&Key, &Entry)| {
            let of = e.port == port && (all || !e.stays && (vid == 0 || parts(*key).1 == vid));
            of.then_some((*key, e.local))
        };
        let gone: Vec<(Key, bool)> = self.fdb.iter().filter_map(goes).collect();
        for (key, local) in gone {
            if local {
                self.fdb_delete_local(key, port, macs);
            } else {
                self.fdb.remove(&key);
            }
        }
    }
    /// A port or the bridge has another address (`br_fdb_changeaddr`, `br_fdb_change_mac_address`).
    pub(super) fn addressed(&mut self, port: Option<u32>, macs: &Macs, now: Time) {
        let mine = |(key, e): (&Key, &Entry)| (e.port == port && e.local && !e.by_user).then_some(*key);
        let old: Vec<Key> = self.fdb.iter().filter_map(mine).collect();
        let mac = macs.of(port);
        for key in old {
            self.fdb_delete_local(key, port, macs);
        }
        self.add_local(mac, 0, port, now);
        let vids: Vec<u16> = match port {
            None => self.vlan.own.iter().map(|v| v.0).collect(),
            Some(ifindex) => self.port(ifindex).map_or(Vec::new(), |p| p.vlans.iter().map(|v| v.0).collect()),
        };
        for vid in vids {
            self.add_local(mac, vid, port, now);
        }
    }
    /// Who was heard and who is here, the newest first.
    pub(crate) fn heard(&self, now: Time) -> Vec<Heard> {
        let mut all: Vec<_> = self.fdb.iter().filter(|(_, e)| !self.has_aged(e, now)).collect();
        all.sort_by_key(|(_, e)| std::cmp::Reverse(e.made));
        let line = |(key, e): (&Key, &Entry)| {
            let (mac, vid) = parts(*key);
            let age = if e.stays { Span::ZERO } else { now - e.updated };
            Heard { mac, vid, port: e.port, local: e.local, stays: e.stays, age }
        };
        all.into_iter().map(line).collect()
    }
    /// The number of a port, from 1.
    pub(crate) fn port_number(&self, ifindex: u32) -> Option<usize> {
        if let Some(tree) = &self.tree {
            return tree.port(ifindex).map(|p| p.number.into());
        }
        self.ports.iter().rev().position(|p| p.ifindex == ifindex).map(|n| n + 1)
    }
}

/// What `bridge fdb` says of an entry.
pub(crate) struct Said {
    /// Its address.
    pub mac: Mac,
    /// Its VLAN; `None`: in all of the port's.
    pub vid: Option<u16>,
    /// `permanent`: the machine's own.
    pub local: bool,
    /// `permanent` and `static`: it does not age.
    pub stays: bool,
}

impl Host {
    pub(super) fn bridge_macs(&self, bridge: u32) -> Macs {
        let mac = |ifindex: u32| self.devices.get(ifindex).map_or([0; 6], |d| d.mac);
        let ports = self.devices.get(bridge).and_then(|d| d.bridge.as_deref()).map_or(&[][..], |b| &b.ports);
        Macs { own: mac(bridge), ports: ports.iter().map(|p| (p.ifindex, mac(p.ifindex))).collect() }
    }
    /// `bridge fdb add|append|replace|del … master`: an entry of a port's bridge.
    ///
    /// # Errors
    /// EOPNOTSUPP where the device is no port; EINVAL for a VLAN that the port is not in, or no address; EPERM for one that ages on a port that
    /// is disabled; EEXIST; ENOENT.
    //= linux v6.12 net/bridge/br_fdb.c br_fdb_add, fdb_add_entry, br_fdb_delete
    pub(crate) fn bridge_fdb(
        &mut self,
        port: u32,
        verb: &str,
        said: &Said,
        now: Time,
    ) -> Result<(), KernelError> {
        let no = |errno| Err(KernelError::errno(errno));
        let Some(bridge) = self.bridge_of(port) else { return no(KernelError::EOPNOTSUPP) };
        let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { return no(KernelError::EOPNOTSUPP) };
        let Some(p) = b.port(port) else { return no(KernelError::EOPNOTSUPP) };
        let learns = b.state(port, now).1;
        if said.vid.is_some_and(|vid| !p.vlans.has(vid)) {
            return no(KernelError::EINVAL);
        }
        let vids: Vec<u16> = match said.vid {
            Some(vid) => vec![vid],
            None => [0].into_iter().chain(p.vlans.iter().map(|v| v.0)).collect(),
        };
        if verb == "del" {
            let mut found = false;
            for vid in vids {
                let key = key(said.mac, vid);
                if b.fdb.get(&key).is_some_and(|e| e.port == Some(port)) {
                    b.fdb.remove(&key);
                    found = true;
                }
            }
            return if found { Ok(()) } else { no(KernelError::ENOENT) };
        }
        if said.mac == [0; 6] {
            return no(KernelError::EINVAL);
        }
        if !said.stays && !learns {
            return no(KernelError::EPERM);
        }
        for vid in vids {
            let key = key(said.mac, vid);
            match b.fdb.get_mut(&key) {
                None => {
                    let (local, stays) = (said.local, said.stays);
                    b.add(key, Entry { local, stays, by_user: true, ..Entry::new(Some(port), now) });
                }
                Some(_) if verb == "add" => return no(KernelError::EEXIST),
                Some(e) => {
                    (e.port, e.local, e.stays) = (Some(port), said.local, said.stays);
                    (e.by_user, e.updated) = (true, now);
                }
            }
        }
        Ok(())
    }
}
