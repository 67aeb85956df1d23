//! Labels of addresses (`ip addrlabel`): a machine speaks to an address rather with one of the same label.
//!
//! Follows: linux v6.12 `net/ipv6/addrlabel.c` `ip6addrlbl_init_table`, `__ip6addrlbl_match`, `ip6addrlbl_alloc`, `__ip6addrlbl_add`, `__ip6addrlbl_del`;
//! RFC 6724 section 2.1.

use super::mask;
use penstock_model::KernelError;
use std::net::Ipv6Addr;

/// What has no label.
const NONE: u32 = u32::MAX;

/// One row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    /// Prefix, without host bits.
    pub prefix: u128,
    /// Its length, bits.
    pub len: u8,
    /// The device whose addresses it is for; 0: all.
    pub ifindex: u32,
    /// The one kind of addresses that it is for, where it is for one.
    kind: Option<Kind>,
    /// Label.
    pub label: u32,
}

/// Kinds of addresses that rows tell apart (`IPV6_ADDR_MAPPED`, `IPV6_ADDR_COMPATv4`, `IPV6_ADDR_LOOPBACK`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Mapped,
    Compatible,
    Loopback,
}

fn kind(addr: u128) -> Option<Kind> {
    match (addr >> 32, addr as u32) {
        (0, 1) => Some(Kind::Loopback),
        (0, 1..) => Some(Kind::Compatible),
        (0xffff, _) => Some(Kind::Mapped),
        _ => None,
    }
}

/// The table of a machine, in the order in which it is searched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Labels(Vec<Label>);

impl Default for Labels {
    fn default() -> Labels {
        const BEGINS: [(u128, u8, u32); 10] = [
            (0, 0, 1),
            (0xfc00 << 112, 7, 5),
            (0xfec0 << 112, 10, 11),
            (0x2002 << 112, 16, 2),
            (0x3ffe << 112, 16, 12),
            (0x2001 << 112, 32, 6),
            (0x2001_0010 << 96, 28, 7),
            (0xffff << 32, 96, 4),
            (0, 96, 3),
            (1, 128, 0),
        ];
        let mut labels = Labels(Vec::new());
        for (prefix, len, label) in BEGINS {
            // None of them is refused.
            let _ = labels.add(Ipv6Addr::from(prefix), len, 0, label);
        }
        labels
    }
}

impl Labels {
    /// All, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Label> {
        self.0.iter()
    }
    /// The label of an address on a device.
    pub(crate) fn of(&self, addr: Ipv6Addr, ifindex: u32) -> u32 {
        let bits = u128::from(addr);
        let holds = |row: &&Label| {
            (row.ifindex == 0 || row.ifindex == ifindex)
                && (row.kind.is_none() || row.kind == kind(bits))
                && (row.prefix ^ bits) & mask(row.len) == 0
        };
        self.0.iter().find(holds).map_or(NONE, |row| row.label)
    }
    /// Puts one in.
    ///
    /// # Errors
    /// EINVAL, EEXIST.
    pub(crate) fn add(
        &mut self,
        addr: Ipv6Addr,
        len: u8,
        ifindex: u32,
        label: u32,
    ) -> Result<(), KernelError> {
        let bits = u128::from(addr);
        let kind = match kind(bits) {
            Some(Kind::Mapped) if len > 96 => return Err(KernelError::errno(KernelError::EINVAL)),
            Some(Kind::Mapped) if len < 96 => None,
            Some(Kind::Compatible) if len != 96 => None,
            Some(Kind::Loopback) if len != 128 => None,
            kind => kind,
        };
        let new = Label { prefix: bits & mask(len), len, ifindex, kind, label };
        for (at, row) in self.0.iter().enumerate() {
            if (row.len, row.ifindex, row.prefix) == (len, ifindex, new.prefix) {
                return Err(KernelError::errno(KernelError::EEXIST));
            }
            if row.len < len || row.len == len && row.ifindex == 0 {
                self.0.insert(at, new);
                return Ok(());
            }
        }
        self.0.push(new);
        Ok(())
    }
    /// Takes one out.
    ///
    /// # Errors
    /// ESRCH.
    pub(crate) fn delete(&mut self, addr: Ipv6Addr, len: u8, ifindex: u32) -> Result<(), KernelError> {
        let prefix = u128::from(addr) & mask(len);
        match self.0.iter().position(|row| (row.len, row.ifindex, row.prefix) == (len, ifindex, prefix)) {
            Some(at) => {
                self.0.remove(at);
                Ok(())
            }
            None => Err(KernelError::errno(KernelError::ESRCH)),
        }
    }
    /// Takes all out.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_says_and_a_device_s_own_before_others() {
        let ip = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let mut labels = Labels::default();
        for (addr, want) in [
            ("::1", 0),
            ("2001:db8::1", 1),
            ("2002::1", 2),
            ("::7.7.7.7", 3),
            ("::ffff:7.7.7.7", 4),
            ("fd00::1", 5),
            ("2001::1", 6),
            ("2001:10::1", 7),
            ("fec0::1", 11),
            ("3ffe::1", 12),
        ] {
            assert_eq!(labels.of(ip(addr), 2), want, "{addr}");
        }
        labels.add(ip("fd00::9"), 16, 0, 90).unwrap();
        labels.add(ip("fd00::"), 16, 3, 91).unwrap();
        assert_eq!((labels.of(ip("fd00::1"), 2), labels.of(ip("fd00::1"), 3)), (90, 91));
        assert_eq!(labels.add(ip("fd00:0:1::"), 16, 0, 7).unwrap_err().errno, KernelError::EEXIST);
        assert_eq!(labels.add(ip("::ffff:1.2.3.4"), 128, 0, 7).unwrap_err().errno, KernelError::EINVAL);
        labels.delete(ip("fd00::"), 16, 3).unwrap();
        assert_eq!(labels.delete(ip("fd00::"), 16, 3).unwrap_err().errno, KernelError::ESRCH);
        assert_eq!(labels.of(ip("fd00::1"), 3), 90);
        labels.clear();
        assert_eq!(labels.of(ip("fd00::1"), 3), NONE);
    }
}
