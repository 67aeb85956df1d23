//! An element of a hash, and its key.
//!
//! The key is the element's bytes as the kernel has them in memory on a little-endian machine of 64 bits: with them elements lie
//! in the same buckets, in the same order, and a listing is the kernel's.
//!
//! Follows: linux v6.12 `net/netfilter/ipset/ip_set_hash_*.c` `struct hash_*4_elem`, `struct hash_*6_elem`, `*_data_equal`.

use penstock_lang::iptables::Family;
use penstock_sched::cls::flow::jhash2;

/// Which hash it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Ip,
    IpMac,
    IpMark,
    IpPort,
    IpPortIp,
    IpPortNet,
    Mac,
    Net,
    NetIface,
    NetNet,
    NetPort,
    NetPortNet,
}

impl Type {
    pub(super) fn named(name: &str) -> Option<Type> {
        Some(match name {
            "hash:ip" => Type::Ip,
            "hash:ip,mac" => Type::IpMac,
            "hash:ip,mark" => Type::IpMark,
            "hash:ip,port" => Type::IpPort,
            "hash:ip,port,ip" => Type::IpPortIp,
            "hash:ip,port,net" => Type::IpPortNet,
            "hash:mac" => Type::Mac,
            "hash:net" => Type::Net,
            "hash:net,iface" => Type::NetIface,
            "hash:net,net" => Type::NetNet,
            "hash:net,port" => Type::NetPort,
            "hash:net,port,net" => Type::NetPortNet,
            _ => return None,
        })
    }
    /// How many of its addresses are prefixes (`IPSET_NET_COUNT`).
    pub(super) const fn nets(self) -> usize {
        match self {
            Type::Net | Type::NetIface | Type::NetPort | Type::IpPortNet => 1,
            Type::NetNet | Type::NetPortNet => 2,
            _ => 0,
        }
    }
    /// Whether prefixes may have length 0 (`IP_SET_HASH_WITH_NET0`, and what reaches it).
    pub(super) const fn net0(self) -> bool {
        matches!(self, Type::NetIface | Type::NetPortNet)
    }
    /// Whether addresses are masked before they are stored (`IP_SET_HASH_WITH_BITMASK`).
    pub(super) const fn masks(self) -> bool {
        matches!(self, Type::Ip | Type::IpPort | Type::NetNet)
    }
    /// Bytes of an element and what it is aligned to.
    pub(super) const fn size(self, family: Family) -> (u64, u64) {
        let six = matches!(family, Family::Ip6);
        let (four, ten) = match self {
            Type::Ip => (4, 16),
            Type::IpMac => (12, 24),
            Type::IpMark | Type::IpPort | Type::Net | Type::NetPort => (8, 20),
            Type::IpPortIp | Type::IpPortNet => (12, 36),
            Type::Mac => (8, 8),
            Type::NetIface => (28, 40),
            Type::NetNet => (16, 36),
            Type::NetPortNet => (16, 40),
        };
        // `ipcmp` of 64 bits is in the IPv4 elements of two networks alone.
        let align = if !six && matches!(self, Type::NetNet | Type::NetPortNet) { 8 } else { 4 };
        (if six { ten } else { four }, align)
    }
}

/// An element. What its type does not have is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Elem {
    pub ip: u128,
    pub ip2: u128,
    pub mark: u32,
    pub port: u16,
    pub proto: u8,
    /// Lengths of the prefixes: of the first address, of the second.
    pub cidr: [u8; 2],
    pub ether: [u8; 6],
    pub physdev: bool,
    pub wildcard: bool,
    pub iface: [u8; 16],
}

/// A device's name as an element has it.
pub(super) fn iface(name: &str) -> [u8; 16] {
    let mut out = [0; 16];
    let len = name.len().min(15);
    out[..len].copy_from_slice(&name.as_bytes()[..len]);
    out
}

/// The name up to its end.
pub(super) fn iface_name(name: &[u8; 16]) -> &str {
    let len = name.iter().position(|b| *b == 0).unwrap_or(16);
    std::str::from_utf8(&name[..len]).unwrap_or("")
}

/// Bytes that are put together.
struct Bytes {
    bytes: [u8; 48],
    len: usize,
}

impl Bytes {
    fn put(&mut self, more: &[u8]) {
        self.bytes[self.len..self.len + more.len()].copy_from_slice(more);
        self.len += more.len();
    }
    fn address(&mut self, family: Family, ip: u128) {
        match family {
            Family::Ip => self.put(&(ip as u32).to_be_bytes()),
            Family::Ip6 => self.put(&ip.to_be_bytes()),
        }
    }
}

impl Elem {
    /// Its key (`HKEY`), not yet cut to the table's size.
    pub(super) fn key(&self, ty: Type, family: Family, initval: u32) -> u32 {
        let mut b = Bytes { bytes: [0; 48], len: 0 };
        let port = self.port.to_be_bytes();
        if ty != Type::Mac {
            b.address(family, self.ip);
        }
        match ty {
            Type::Ip => {}
            Type::Mac | Type::IpMac => {
                b.put(&self.ether);
                b.put(&[0, 0]);
            }
            Type::IpMark => b.put(&self.mark.to_le_bytes()),
            Type::IpPort => b.put(&[port[0], port[1], self.proto, 0]),
            Type::IpPortIp => {
                b.address(family, self.ip2);
                b.put(&[port[0], port[1], self.proto, 0]);
            }
            Type::IpPortNet => {
                b.address(family, self.ip2);
                b.put(&[port[0], port[1], self.cidr[1].wrapping_sub(1) & 0x7f, self.proto]);
            }
            Type::Net => b.put(&[0, 0, 0, self.cidr[0]]),
            Type::NetIface => b.put(&[u8::from(self.physdev), self.cidr[0], 0, 1]),
            Type::NetPort => {
                b.put(&[port[0], port[1], self.proto, self.cidr[0].wrapping_sub(1) & 0x7f]);
            }
            Type::NetNet => {
                b.address(family, self.ip2);
                b.put(&[0, 0, self.cidr[0], self.cidr[1]]);
                if family == Family::Ip {
                    b.put(&[0; 4]);
                }
            }
            Type::NetPortNet => {
                b.address(family, self.ip2);
                b.put(&[port[0], port[1], self.cidr[0], self.cidr[1], 0, 0, 0, self.proto]);
            }
        }
        let mut words = [0u32; 12];
        for (word, four) in words.iter_mut().zip(b.bytes[..b.len].chunks_exact(4)) {
            *word = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        }
        jhash2(&words[..b.len / 4], initval)
    }

    /// Whether it, which is stored, is another (`*_data_equal`); `multi` counts those that differ in the device alone.
    pub(super) fn equal(&self, other: &Elem, ty: Type, multi: &mut u32) -> bool {
        if ty != Type::NetIface {
            return self == other;
        }
        if self.ip != other.ip || self.cidr != other.cidr {
            return false;
        }
        *multi += 1;
        let (own, its) = (iface_name(&self.iface), iface_name(&other.iface));
        self.physdev == other.physdev && if self.wildcard { its.starts_with(own) } else { own == its }
    }
}
