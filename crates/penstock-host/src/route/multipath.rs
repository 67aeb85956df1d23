//! What chooses among several ways: fields of a packet, as settings name them.
//!
//! Follows: linux v6.12 `net/ipv4/route.c` `fib_multipath_hash`, `net/ipv6/route.c` `rt6_multipath_hash`; Documentation/networking/ip-sysctl.rst
//! `fib_multipath_hash_policy`, `fib_multipath_hash_fields`.
//! Differs: the hash is not the kernel's, which has a secret; an error of ICMP is hashed by its own addresses, not by those of the packet it is about.

use super::Ports;
use std::net::IpAddr;

/// `FIB_MULTIPATH_HASH_FIELD_*`.
const SRC: u16 = 1;
const DST: u16 = 2;
const PROTO: u16 = 4;
const LABEL: u16 = 8;
const SPORT: u16 = 16;
const DPORT: u16 = 32;

/// The settings of one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Multipath {
    /// `fib_multipath_hash_policy`: 0 addresses, 1 addresses, protocol and ports, 3 what `fields` says. 2 counts as 0.
    pub(crate) policy: u8,
    /// `fib_multipath_hash_fields`.
    pub(crate) fields: u16,
    /// IPv6: its policy 0 takes the protocol and the flow label besides.
    six: bool,
}

impl Multipath {
    /// The bits of fields there are (`FIB_MULTIPATH_HASH_FIELD_ALL_MASK`).
    const ALL: i64 = 0xfff;
    /// Those of a packet itself. The others are of one within it, which nothing here looks at.
    pub(crate) const OUTER: i64 = 0x3f;
    pub(super) const FOUR: Multipath = Multipath { policy: 0, fields: SRC | DST | PROTO, six: false };
    pub(crate) const SIX: Multipath = Multipath { six: true, ..Multipath::FOUR };

    /// Sets `fib_multipath_hash_policy` or `fib_multipath_hash_fields`; `None` for a value that Linux refuses.
    pub(crate) fn set(&mut self, setting: &str, value: i64) -> Option<()> {
        match setting {
            "fib_multipath_hash_policy" if (0..=3).contains(&value) => self.policy = value as u8,
            "fib_multipath_hash_fields" if (1..=Self::ALL).contains(&value) => self.fields = value as u16,
            _ => return None,
        }
        Some(())
    }
    fn counted(self) -> u16 {
        match self.policy {
            1 => SRC | DST | PROTO | SPORT | DPORT,
            3 => self.fields,
            _ if self.six => SRC | DST | PROTO | LABEL,
            _ => SRC | DST,
        }
    }
    /// Which of ways of these weights a packet takes: the number of one. All weights together are under 2^32.
    pub(crate) fn choose(
        self,
        (src, dst): (IpAddr, IpAddr),
        label: u32,
        ports: Ports,
        weights: impl Iterator<Item = u32> + Clone,
    ) -> Option<usize> {
        let fields = self.counted();
        let of = |field: u16, value: u128| if fields & field == 0 { 0 } else { value };
        let bits = |addr: IpAddr| match addr {
            IpAddr::V4(addr) => u128::from(u32::from(addr)),
            IpAddr::V6(addr) => u128::from(addr),
        };
        let more = of(LABEL, u128::from(label)) << 64
            | of(PROTO, u128::from(ports.protocol)) << 32
            | of(SPORT, u128::from(ports.sport)) << 16
            | of(DPORT, u128::from(ports.dport));
        let all = [of(SRC, bits(src)), of(DST, bits(dst)), more];
        // SplitMix64's finish.
        let flow = all.iter().fold(0u64, |h, a| {
            let h = h ^ (a >> 64) as u64 ^ (*a as u64).rotate_left(29);
            let h = (h ^ h >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let h = (h ^ h >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            h ^ h >> 31
        });
        let total: u64 = weights.clone().map(u64::from).sum();
        let mut at = ((flow >> 32) * total) >> 32;
        weights.map(u64::from).position(|weight| {
            let here = at < weight;
            at = at.wrapping_sub(weight);
            here
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of 3000 flows that differ in what `vary` sets take each of two ways of the weights 2 and 1.
    fn shares(paths: Multipath, vary: fn(u16) -> (IpAddr, u32, Ports)) -> [usize; 2] {
        let mut taken = [0; 2];
        for n in 0..3000 {
            let (src, label, ports) = vary(n);
            let way = paths.choose((src, [10, 0, 0, 1].into()), label, ports, [2, 1].into_iter());
            taken[way.unwrap()] += 1;
        }
        taken
    }
    fn by_address(n: u16) -> (IpAddr, u32, Ports) {
        (IpAddr::from([192, 168, (n >> 8) as u8, n as u8]), 0, Ports::default())
    }
    fn by_port(n: u16) -> (IpAddr, u32, Ports) {
        (IpAddr::from([192, 168, 0, 1]), 0, Ports { protocol: 6, sport: 10_000 + n, dport: 80 })
    }
    fn by_label(n: u16) -> (IpAddr, u32, Ports) {
        (IpAddr::from([192, 168, 0, 1]), n.into(), Ports { protocol: 6, sport: 10_000, dport: 80 })
    }

    #[test]
    fn settings_are_followed_or_refused() {
        use penstock_model::{Kernel, Time};
        let mut host = crate::Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        let mut said = |command: &str| host.exec(command, Time::ZERO);
        for command in [
            "ip link set eth0 up",
            "ip addr add 10.0.0.1/24 dev eth0",
            "ip addr add 2001:db8::1/64 dev eth0 nodad",
            "ip route add 192.0.2.0/24 nexthop via 10.0.0.2 nexthop via 10.0.0.3",
            "ip -6 route add 2001:db8:9::/64 nexthop via 2001:db8::2 nexthop via 2001:db8::3",
        ] {
            assert_eq!(said(command).status, 0, "{command}");
        }
        for (family, dst) in [("ipv4", "192.0.2.1"), ("ipv6", "2001:db8:9::1")] {
            let mut ways = |policy: u32| {
                let command = format!("sysctl -w net.{family}.fib_multipath_hash_policy={policy}");
                assert_eq!(said(&command).status, 0, "{command}");
                let get = |n: u32| said(&format!("ip route get {dst} ipproto tcp sport {n} dport 80")).stdout;
                let via = |text: String| text.split(" dev ").next().map(str::to_owned);
                let all: std::collections::BTreeSet<_> = (1000..1040).map(get).map(via).collect();
                all.len()
            };
            assert_eq!([ways(0), ways(1), ways(0)], [1, 2, 1], "{family}");
            for wrong in ["policy=4", "fields=0", "fields=4096"] {
                let out = said(&format!("sysctl -w net.{family}.fib_multipath_hash_{wrong}"));
                assert!(out.status != 0 && out.stderr.contains("Invalid argument"), "{wrong}: {out:?}");
            }
        }
    }
    #[test]
    fn what_the_policy_names_decides() {
        let shared = |taken: [usize; 2]| (1900..2100).contains(&taken[0]);
        let one = |taken: [usize; 2]| taken.contains(&3000);
        let four = Multipath::FOUR;
        assert!(shared(shares(four, by_address)) && one(shares(four, by_port)));
        let layer4 = Multipath { policy: 1, ..four };
        assert!(shared(shares(layer4, by_address)) && shared(shares(layer4, by_port)));
        assert!(one(shares(layer4, by_label)));
        let own = Multipath { policy: 3, fields: SPORT, ..four };
        assert!(one(shares(own, by_address)) && shared(shares(own, by_port)));
        assert!(shared(shares(Multipath::SIX, by_label)) && one(shares(Multipath::SIX, by_port)));
    }
}
