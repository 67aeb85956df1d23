//! `conntrack`: the table of connections listed, counted, emptied.
//!
//! Follows: conntrack-tools 1.4.7 `src/conntrack.c`.
//! Differs: `-L -D -F -C` and these options; what else it knows is refused.

use super::Ran;
use crate::netfilter::Connection;
use crate::{Host, Output};
use penstock_lang::token::Line;
use penstock_model::Time;
use std::net::IpAddr;

const VERSION: &str = "conntrack v1.4.7 (conntrack-tools)";

/// What is asked of a connection.
#[derive(Default)]
struct Wanted {
    protocol: Option<u8>,
    /// `-f`, or that of an address: whether it is IPv6.
    six: Option<bool>,
    /// Source and destination of the original, of the reply: address and mask.
    addresses: [Option<(u128, u128)>; 4],
    ports: [Option<u16>; 4],
    mark: Option<u32>,
    translated: u16,
}

impl Wanted {
    fn holds(&self, c: &Connection) -> bool {
        let [original, reply] = c.tuples;
        let addresses = [original.src, original.dst, reply.src, reply.dst];
        let ports = [original.sport, original.dport, reply.sport, reply.dport];
        self.six.is_none_or(|six| six == c.is_ipv6())
            && self.protocol.is_none_or(|p| p == original.protocol)
            && self
                .addresses
                .iter()
                .zip(addresses)
                .all(|(a, is)| a.is_none_or(|(a, mask)| (a ^ is) & mask == 0))
            && self.ports.iter().zip(ports).all(|(p, is)| p.is_none_or(|p| p == is))
            && self.mark.is_none_or(|mark| mark == c.mark)
            && (self.translated == 0 || c.status & self.translated != 0)
    }
    /// Reads an option and its value; an error is the program's word for it.
    fn read(&mut self, option: &str, value: Option<&str>) -> Result<(), String> {
        use crate::netfilter::status::{DST_NAT, SRC_NAT};
        match option {
            "-n" | "--src-nat" => self.translated |= SRC_NAT,
            "-g" | "--dst-nat" => self.translated |= DST_NAT,
            "-j" | "--any-nat" => self.translated |= SRC_NAT | DST_NAT,
            _ => {
                let value = value.ok_or(format!("option `{option}' requires an argument"))?;
                self.value(option, value)?;
            }
        }
        Ok(())
    }
    /// All that is asked is of one family.
    fn family(&mut self, six: bool) -> Result<(), String> {
        match self.six.replace(six) {
            Some(before) if before != six => Err("mismatched address family".to_owned()),
            _ => Ok(()),
        }
    }
    fn value(&mut self, option: &str, value: &str) -> Result<(), String> {
        let bad = || format!("Bad parameter `{value}'");
        let port = || value.parse::<u16>().map(Some).map_err(|_| bad());
        let place = match option {
            "-s" | "--src" | "--orig-src" => Some(0),
            "-d" | "--dst" | "--orig-dst" => Some(1),
            "-r" | "--reply-src" => Some(2),
            "-q" | "--reply-dst" => Some(3),
            _ => None,
        };
        if let Some(place) = place {
            let invalid = || format!("Invalid IP address `{value}'");
            let (addr, len) = value.split_once('/').map_or((value, None), |(a, len)| (a, Some(len)));
            let addr: IpAddr = addr.parse().map_err(|_| invalid())?;
            let bits = if addr.is_ipv6() { 128 } else { 32 };
            let len = len.map_or(Ok(bits), |len| len.parse::<u8>().map_err(|_| invalid()))?;
            if len > bits {
                return Err(invalid());
            }
            self.family(addr.is_ipv6())?;
            let (addr, before) = match addr {
                IpAddr::V4(a) => (u128::from(u32::from(a)), 96),
                IpAddr::V6(a) => (a.into(), 0),
            };
            self.addresses[place] = Some((addr, crate::six::mask(before + len)));
            return Ok(());
        }
        match option {
            "-p" | "--proto" => {
                const KNOWN: [(&str, u8); 5] =
                    [("icmp", 1), ("tcp", 6), ("udp", 17), ("icmpv6", 58), ("ipv6-icmp", 58)];
                let named = KNOWN.iter().find(|k| k.0 == value).map(|k| k.1);
                let number = named.or_else(|| value.parse().ok());
                self.protocol = Some(number.ok_or(format!("`{value}' unsupported protocol"))?);
            }
            "--sport" | "--orig-port-src" => self.ports[0] = port()?,
            "--dport" | "--orig-port-dst" => self.ports[1] = port()?,
            "--reply-port-src" => self.ports[2] = port()?,
            "--reply-port-dst" => self.ports[3] = port()?,
            "-m" | "--mark" => self.mark = Some(value.parse().map_err(|_| bad())?),
            "-f" | "--family" if value == "ipv4" => self.family(false)?,
            "-f" | "--family" if value == "ipv6" => self.family(true)?,
            _ => return Err(format!("option `{option}' is not known here")),
        }
        Ok(())
    }
}

impl Host {
    /// `conntrack`.
    pub(super) fn conntrack(&mut self, line: &Line, now: Time) -> Ran {
        let fail = |said: String| {
            let text = format!(
                "{VERSION}: {said}\nTry `conntrack -h' or 'conntrack --help' for more information.\n"
            );
            Output::fail(text, 2, "conntrack -L, -D, -F or -C, with -p, -s, -d, --sport, --dport, -m, -n, -g")
        };
        let mut words = line.words[1..].iter().map(|w| w.text.as_str()).peekable();
        let mut command = None;
        let mut wanted = Wanted::default();
        while let Some(word) = words.next() {
            match word {
                "-L" | "--dump" | "-D" | "--delete" | "-F" | "--flush" | "-C" | "--count" => {
                    command = match word {
                        "--dump" => Some('L'),
                        "--count" => Some('C'),
                        _ => word.trim_start_matches('-').chars().next().map(|c| c.to_ascii_uppercase()),
                    };
                    // The table may be named.
                    words.next_if_eq(&"conntrack");
                }
                "-E" | "--event" => return fail("events are not listened to here".to_owned()),
                _ => {
                    let alone = ["-n", "-g", "-j", "--src-nat", "--dst-nat", "--any-nat"].contains(&word);
                    let value = if alone { None } else { words.next() };
                    if let Err(said) = wanted.read(word, value) {
                        return fail(said);
                    }
                }
            }
        }
        let tracking = self.netfilter.tracking_mut();
        let (stdout, said, status) = match command {
            Some('L') => {
                let (text, count) = tracking.list(now, |c| wanted.holds(c));
                (text, format!("{count} flow entries have been shown."), 0)
            }
            Some('D') => {
                let (text, count) = tracking.list(now, |c| wanted.holds(c));
                tracking.forget_all(|c| wanted.holds(c));
                (text, format!("{count} flow entries have been deleted."), i32::from(count == 0))
            }
            Some('F') => {
                tracking.forget_all(|_| true);
                (String::new(), "connection tracking table has been emptied.".to_owned(), 0)
            }
            Some(_) => return Output { stdout: format!("{}\n", tracking.count(now)), ..Output::default() },
            None => return fail("no command specified".to_owned()),
        };
        let stderr = format!("{VERSION}: {said}\n");
        Output { stdout, stderr, status, ..Output::default() }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Net, h4, routed, set4, udp};
    use penstock_model::{Kernel, Span};
    use penstock_packet::{L4, Skb};

    /// A router whose inside is 10.0.1.0/24, and two datagrams from there that have passed it.
    fn masqueraded() -> Net {
        let mut net = routed(Kernel::V6_12);
        said(&mut net, "iptables -t nat -A POSTROUTING -o eth1 -j MASQUERADE");
        for port in [1000, 2000] {
            let mut packet = udp("10.0.1.1", "10.0.2.1", 100);
            if let L4::Udp(u) = &mut packet.l4 {
                u.sport = port;
            }
            net.send(0, packet).unwrap();
        }
        let next = net.now + Span::from_ms(500);
        net.run(next);
        net
    }
    fn said(net: &mut Net, line: &str) -> (String, String, i32) {
        let now = net.now;
        let out = net.hosts[1].exec(line, now);
        (out.stdout, out.stderr, out.status)
    }
    fn delivered(net: &Net) -> Vec<&Skb> {
        net.delivered.iter().map(|(_, packet)| &**packet).collect()
    }

    #[test]
    fn the_table_is_listed_and_emptied() {
        let mut net = masqueraded();
        assert_eq!(delivered(&net).len(), 2);
        assert!(delivered(&net).iter().all(|p| h4(p).src.to_string() == "10.0.2.254"));
        let (list, said_, status) = said(&mut net, "conntrack -L --sport 2000");
        assert_eq!(
            list,
            "udp      17 29 src=10.0.1.1 dst=10.0.2.1 sport=2000 dport=2000 [UNREPLIED] src=10.0.2.1 dst=10.0.2.254 sport=2000 dport=2000 mark=0 use=1\n"
        );
        assert_eq!(said_, "conntrack v1.4.7 (conntrack-tools): 1 flow entries have been shown.\n");
        assert_eq!(status, 0);
        assert_eq!(said(&mut net, "conntrack -C").0, "2\n");
        assert_eq!(said(&mut net, "conntrack -L -n").0.lines().count(), 2);
        assert_eq!(said(&mut net, "conntrack -L -p tcp").0, "");
        let (_, said_, status) = said(&mut net, "conntrack -D -d 10.0.2.1 --sport 1000");
        assert!(said_.contains("1 flow entries have been deleted") && status == 0, "{said_}");
        assert_eq!(said(&mut net, "conntrack -D --sport 1000").2, 1);
        assert_eq!(said(&mut net, "cat /proc/sys/net/netfilter/nf_conntrack_count").0, "1\n");
        said(&mut net, "conntrack -F");
        assert_eq!(said(&mut net, "conntrack -C").0, "0\n");
        assert_eq!(said(&mut net, "conntrack -L -x 5").2, 2);
        assert_eq!(said(&mut net, "conntrack -E").2, 2);
    }

    #[test]
    fn connections_of_a_device_go_down_with_it() {
        for (line, left) in [
            ("ip link set eth0 down", 2),
            ("ip link set eth1 down", 0),
            ("ip addr del 10.0.2.254/24 dev eth1", 0),
        ] {
            let mut net = masqueraded();
            assert_eq!(said(&mut net, line).2, 0);
            assert_eq!(said(&mut net, "conntrack -C").0, format!("{left}\n"), "{line}");
        }
    }

    #[test]
    fn a_packet_that_a_capture_shows_is_not_translated_again() {
        let mut net = masqueraded();
        let before = net.frames.len();
        let mut packet = udp("10.0.1.9", "10.0.2.1", 100);
        set4(&mut packet, |h| h.ttl = 9);
        net.leaves_by(1, 3, Some(2), packet);
        let frame = &net.frames[before].2;
        assert_eq!(h4(frame).src.to_string(), "10.0.1.9");
    }
}
