//! Which devices are in a VRF, and what that means for a lookup.
//!
//! Follows: linux v6.12 `net/l3mdev/l3mdev.c` `l3mdev_fib_table_rcu`, `l3mdev_master_ifindex_rcu`, `l3mdev_update_flow`.

use super::Key;

/// The VRF of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct L3mdev {
    /// Index of the VRF's device, which is its own; 0: none.
    pub master: u32,
    /// Its table; 0: none.
    pub table: u32,
}

/// The devices that are VRFs or ports of VRFs, by index; empty where there is no VRF.
#[derive(Default)]
pub(crate) struct L3mdevs(Vec<L3mdev>);

impl L3mdevs {
    /// Those of these devices: index, and where it is.
    pub(crate) fn new(all: impl Iterator<Item = (u32, L3mdev)>) -> L3mdevs {
        let mut of = Vec::new();
        for (ifindex, l3mdev) in all {
            if of.len() <= ifindex as usize {
                of.resize(ifindex as usize + 1, L3mdev::default());
            }
            of[ifindex as usize] = l3mdev;
        }
        L3mdevs(of)
    }
    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Where a device is.
    #[inline]
    pub(crate) fn of(&self, ifindex: u32) -> L3mdev {
        self.0.get(ifindex as usize).copied().unwrap_or_default()
    }
    /// The VRF that a device is a port of (`netif_is_l3_slave`).
    #[inline]
    pub(crate) fn master_of_port(&self, ifindex: u32) -> Option<u32> {
        let master = self.of(ifindex).master;
        (master != 0 && master != ifindex).then_some(master)
    }
    /// The device that packets to own addresses on `ifindex` are received by: its VRF's, else `lo`.
    #[inline]
    pub(crate) fn loopback_of(&self, ifindex: u32) -> u32 {
        self.of(ifindex).master.max(1)
    }
    /// `l3mdev_update_flow`: a VRF follows from the device a packet leaves by, else from the one it came in by. The VRF's own device is no
    /// device that a route leads out of.
    #[inline]
    pub(crate) fn update_flow(&self, mut key: Key) -> Key {
        if self.is_empty() {
            return key;
        }
        if key.oif != 0 {
            let out = self.of(key.oif).master;
            if key.l3mdev == 0 {
                key.l3mdev = out;
            }
            if out == key.oif {
                key.oif = 0;
            }
        } else if key.iif > 1 && key.l3mdev == 0 {
            key.l3mdev = self.of(key.iif).master;
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vrf_follows_from_the_devices_of_a_flow() {
        let red = L3mdev { master: 7, table: 10 };
        let all = L3mdevs::new([(7, red), (3, red)].into_iter());
        let to = Key::to([10, 0, 0, 1].into());
        let flow = |oif, iif, l3mdev| {
            let key = all.update_flow(Key { oif, iif, l3mdev, ..to });
            (key.oif, key.iif, key.l3mdev)
        };
        // By a port, by the VRF itself, in by a port, and by devices that are in none.
        assert_eq!(flow(3, 1, 0), (3, 1, 7));
        assert_eq!(flow(7, 1, 0), (0, 1, 7));
        assert_eq!(flow(0, 3, 0), (0, 3, 7));
        assert_eq!(flow(2, 3, 0), (2, 3, 0));
        assert_eq!(flow(0, 2, 7), (0, 2, 7));
        assert_eq!(
            (all.master_of_port(3), all.master_of_port(7), all.master_of_port(2)),
            (Some(7), None, None)
        );
        assert_eq!((all.loopback_of(3), all.loopback_of(2), all.loopback_of(99)), (7, 1, 1));
    }
}
