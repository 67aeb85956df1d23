//! `conntrack`: the table of connections listed, counted, changed and emptied.
//!
//! Follows: conntrack-tools 1.4.7 `src/conntrack.c` `do_command_ct`, `nfct_filter`, `mnl_nfct_update_cb`; libnetfilter_conntrack 1.0.9 `src/conntrack/compare.c`.
//! Differs: no events and no statistics; connections are made of TCP, UDP, ICMP and protocols without ports, not of SCTP, DCCP and GRE; none has other zones
//! by direction; there are no names of labels.

mod tables;
mod words;

use super::Ran;
use crate::netfilter::{Change, Connection, New, Tracking, Tuple, status};
use crate::{Host, Output};
use penstock_lang::token::Line;
use penstock_model::{KernelError, Time};
use std::net::IpAddr;
use tables::Handler;
use words::{Asked, Table, output};

const VERSION: &str = "conntrack v1.4.7 (conntrack-tools)";
const HELP: &str = "conntrack -L, -D, -F, -C, -I, -U or -G, with -p, -s, -d, --sport, --dport, -m, -n, -g";

/// An address as tuples have it.
fn wide(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(a) => u128::from(u32::from(a)),
        IpAddr::V6(a) => a.into(),
    }
}

/// What `err2str` makes of an errno.
fn why(errno: i32, command: char) -> &'static str {
    match (errno, command) {
        (KernelError::EINVAL, _) => "invalid parameters",
        (KernelError::EEXIST, 'I') => "Such conntrack exists, try -U to update",
        (KernelError::ENOENT, 'I' | 'A' | 'G' | 'D') => "such conntrack doesn't exist",
        (KernelError::ENOMEM, 'I' | 'A' | 'G') => "not enough memory",
        (KernelError::EPERM, _) => "sorry, you must be root or get CAP_NET_ADMIN capability to do this",
        (16, _) => "Device or resource busy",
        (errno, _) => KernelError::errno(errno).strerror(),
    }
}

impl Asked {
    /// `nfct_cmp` of one direction: what was said of its addresses and ports.
    fn direction_holds(&self, c: &Connection, reply: bool) -> bool {
        let t = &c.tuples[usize::from(reply)];
        let at = if reply { 2 } else { 0 };
        let icmp = matches!(self.handler, Some(Handler::Icmp | Handler::Icmpv6));
        let addresses = [t.src, t.dst].into_iter().enumerate().all(|(n, is)| {
            let masked = !reply && self.masks[n].is_some();
            self.addresses[at + n].is_none_or(|a| a.is_ipv6() == c.is_ipv6() && (masked || wide(a) == is))
        });
        let numbers = match (icmp, reply) {
            (true, false) => {
                let [ty, code, id, _] = self.numbers;
                ty.is_none_or(|n| n == t.dport >> 8)
                    && code.is_none_or(|n| n == t.dport & 0xff)
                    && id.is_none_or(|n| n == t.sport)
            }
            (true, true) => true,
            _ => [t.sport, t.dport]
                .iter()
                .enumerate()
                .all(|(n, is)| self.numbers[at + n].is_none_or(|p| p == *is)),
        };
        addresses && numbers && (reply || self.protocol.is_none_or(|p| p == t.protocol))
    }
    /// `filter_network`.
    fn network_holds(&self, c: &Connection) -> bool {
        let t = &c.tuples[0];
        [t.src, t.dst].into_iter().enumerate().all(|(n, is)| match (self.masks[n], self.addresses[n]) {
            (Some(mask), Some(a)) => a.is_ipv6() == c.is_ipv6() && (wide(a) ^ is) & mask == 0,
            _ => true,
        })
    }
    /// `filter_nat`.
    fn translation_holds(&self, c: &Connection) -> bool {
        let [original, reply] = c.tuples;
        let of = |source: bool| {
            let (done, addr, port) = match source {
                true => (status::SRC_NAT_DONE, (reply.dst, original.src), (reply.dport, original.sport)),
                false => (status::DST_NAT_DONE, (reply.src, original.dst), (reply.sport, original.dport)),
            };
            let (moved, port_moved) =
                (c.has(done) && addr.0 != addr.1, c.has(done) && port.0 != port.1 && !original.is_icmp());
            let wanted = self.nat[usize::from(!source)].unwrap_or((None, None));
            match wanted {
                (None, None) => moved || port_moved,
                (Some(a), None) => moved && wide(a) == addr.0,
                (None, Some(p)) => port_moved && p == port.0,
                (Some(a), Some(p)) => moved && wide(a) == addr.0 && port_moved && p == port.0,
            }
        };
        match (self.any_nat, self.nat[0].is_some(), self.nat[1].is_some()) {
            (true, ..) => of(true) || of(false),
            (_, false, false) => true,
            (_, source, destination) => (!source || of(true)) && (!destination || of(false)),
        }
    }
    /// `nfct_filter`, and what the kernel is asked for.
    fn holds(&self, id: u32, c: &Connection, left: i64) -> bool {
        let compared = [
            "protonum",
            "src",
            "dst",
            "reply-src",
            "reply-dst",
            "mark",
            "secmark",
            "status",
            "id",
            "zone",
            "orig-zone",
            "reply-zone",
        ];
        let zone = c.tuples[0].zone;
        self.six.is_none_or(|six| six == c.is_ipv6())
            && self.translation_holds(c)
            && [self.mark, self.mark_asked].iter().flatten().all(|(value, mask)| c.mark & mask == *value)
            && self.network_holds(c)
            && (self.command != Some('L')
                || self.status_asked.is_none_or(|(value, mask)| c.status & mask == value))
            && (!compared.iter().any(|o| self.has(o))
                || self.direction_holds(c, false)
                    && self.direction_holds(c, true)
                    && self.timeout.is_none_or(|t| i64::from(t) == left)
                    && self.status.is_none_or(|bits| c.has(bits))
                    && self.tcp.is_none_or(|s| c.tuples[0].protocol == 6 && Tracking::tcp_number(c) == s)
                    && self.zone.is_none_or(|z| z != 0 && z == zone)
                    && self.other_zones.iter().all(Option::is_none)
                    && !self.secmark
                    && self.id.is_none_or(|wanted| wanted == id))
    }
    /// The tuples of a connection that is to be made, or is asked for.
    fn tuples(&self) -> Result<[Tuple; 2], KernelError> {
        let invalid = || KernelError::errno(KernelError::EINVAL);
        let zone = self.zone.unwrap_or(0);
        let protocol = self.protocol.ok_or_else(invalid)?;
        let [src, dst, reply_src, reply_dst] = self.addresses.map(|a| a.map(wide));
        let [a, b, c, d] = self.numbers;
        let icmp = matches!(self.handler, Some(Handler::Icmp | Handler::Icmpv6));
        let with = |src, dst, sport: Option<u16>, dport: Option<u16>| -> Option<Tuple> {
            let (sport, dport) = (sport.unwrap_or(0), dport.unwrap_or(0));
            Some(Tuple { src: src?, dst: dst?, protocol, sport, dport, zone })
        };
        let own = match icmp {
            true => with(src, dst, c, a.map(|ty| ty << 8 | b.unwrap_or(0))),
            false => with(src, dst, a, b),
        };
        let said = reply_src.is_some() || reply_dst.is_some();
        // What is not said of it is 0.
        let reply =
            if icmp || !said { None } else { with(reply_src.or(Some(0)), reply_dst.or(Some(0)), c, d) };
        let ports = matches!(self.handler, Some(Handler::Tcp | Handler::Udp));
        match (own, reply) {
            (Some(own), _) if !said => Ok([own, own.reverse().ok_or_else(invalid)?]),
            (Some(own), Some(reply)) if !ports || c.is_some() && d.is_some() => Ok([own, reply]),
            (None, Some(reply)) if src.is_none() && dst.is_none() => {
                Ok([reply.reverse().ok_or_else(invalid)?, reply])
            }
            _ => Err(invalid()),
        }
    }
}

impl Host {
    /// `conntrack`.
    pub(super) fn conntrack(&mut self, line: &Line, now: Time) -> Ran {
        self.netfilter.tracking_mut().is_there();
        let words: Vec<&str> = line.words[1..].iter().map(|w| w.text.as_str()).collect();
        let asked = match words::parse(&words) {
            Ok(asked) => asked,
            Err(refused) => return conntrack_fails(refused.warning, &refused.text, refused.exit),
        };
        for (n, option) in ["mask-src", "mask-dst"].iter().enumerate() {
            if matches!(asked.command, Some('L' | 'U' | 'D'))
                && asked.masks[n].is_some()
                && asked.addresses[n].is_none()
            {
                let of = &option[5..];
                return conntrack_fails(&asked.remarks, &format!("Can't use --{option} without --{of}"), 2);
            }
        }
        let mut ran = self.conntrack_command(&asked, now);
        ran.stderr.insert_str(0, &asked.remarks);
        ran
    }
    fn conntrack_command(&mut self, asked: &Asked, now: Time) -> Ran {
        let Some(command) = asked.command else { return Output::say(USAGE.to_owned()) };
        let says = |stdout: String, count: usize, what: &str| {
            let fails = count == 0 && !matches!(command, 'L' | 'A');
            Output {
                stdout,
                stderr: format!("{VERSION}: {count} {what}.\n"),
                status: i32::from(fails),
                ..Output::default()
            }
        };
        if asked.table == Table::Expectations {
            return match command {
                'L' => says(String::new(), 0, "expectations have been shown"),
                'C' => Output::say("0\n".to_owned()),
                'F' => Output {
                    stderr: format!("{VERSION}: expectation table has been emptied.\n"),
                    ..Output::default()
                },
                'G' | 'D' => conntrack_fails("", "Operation failed: No such file or directory", 1),
                _ => Output::not_simulated(
                    &format!("conntrack -{command} expect"),
                    "no connection here expects another: leave it out",
                ),
            };
        }
        match command {
            'V' => Output::say(format!("{VERSION}\n")),
            'h' => Output::say(USAGE.to_owned()),
            'E' => Output::not_simulated("conntrack -E", "conntrack -L shows the table as it is"),
            'S' => Output::not_simulated("conntrack -S", "conntrack -C counts the table"),
            'C' => Output::say(format!("{}\n", self.netfilter.tracking().count(now))),
            'F' => {
                let six = asked.six;
                self.netfilter.tracking_mut().forget_all(|c| six.is_none_or(|six| six == c.is_ipv6()));
                Output {
                    stderr: format!("{VERSION}: connection tracking table has been emptied.\n"),
                    ..Output::default()
                }
            }
            'L' if matches!(asked.table, Table::Dying | Table::Unconfirmed) => {
                says(String::new(), 0, "flow entries have been shown")
            }
            'L' => {
                let compared =
                    asked.options & !(1 << 7 | 1 << 19 | 1 << 16 | 1 << 17 | 1 << 18 | 1 << 22 | 1 << 21);
                if asked.has("zero") && compared != 0 {
                    return conntrack_fails("", "Can't use -z with filtering parameters", 2);
                }
                let all = self.conntrack_chosen(asked, now);
                let text = self.conntrack_text(&all, asked, "-A ", now);
                if asked.has("zero") {
                    all.iter().for_each(|(id, _)| self.netfilter.tracking_mut().zero(*id));
                }
                says(text, all.len(), "flow entries have been shown")
            }
            'D' => {
                let all = self.conntrack_chosen(asked, now);
                let text = self.conntrack_text(&all, asked, "-D ", now);
                all.iter().for_each(|(id, _)| self.netfilter.tracking_mut().forget_numbered(*id));
                // It begins no document where it deletes.
                let text = text.replace(XML_BEGINS, "").replace(XML_ENDS, "");
                says(text, all.len(), "flow entries have been deleted")
            }
            'I' | 'A' | 'G' if asked.handler == Some(Handler::Other) => Output::not_simulated(
                "conntrack of SCTP, DCCP and GRE",
                "connections are made with -p tcp, udp, udplite, icmp, icmpv6 or a number",
            ),
            'I' | 'A' if asked.other_zones.iter().any(Option::is_some) => {
                Output::not_simulated("conntrack --orig-zone", "-w is the zone of both directions")
            }
            'I' | 'A' => {
                let what = if command == 'I' { "created" } else { "added" };
                match self.conntrack_make(asked, now) {
                    Ok(()) => says(String::new(), 1, &format!("flow entries have been {what}")),
                    Err(KernelError::EEXIST) if command == 'A' => {
                        says(String::new(), 0, "flow entries have been added")
                    }
                    Err(errno) => {
                        conntrack_fails("", &format!("Operation failed: {}", why(errno, command)), 1)
                    }
                }
            }
            'G' => {
                let found = match asked.tuples() {
                    Ok(tuples) => {
                        let tracking = self.netfilter.tracking_mut();
                        tracking.having(&tuples[0], now).ok_or(KernelError::ENOENT)
                    }
                    Err(e) => Err(e.errno),
                };
                match found {
                    Ok(id) => {
                        let all = self
                            .netfilter
                            .tracking()
                            .numbered(now)
                            .into_iter()
                            .filter(|(n, _)| *n == id)
                            .collect::<Vec<_>>();
                        let text = self.conntrack_text(&all, asked, "-A ", now).replace(XML_ENDS, "");
                        says(text, all.len(), "flow entries have been shown")
                    }
                    Err(errno) => {
                        conntrack_fails("", &format!("Operation failed: {}", why(errno, command)), 1)
                    }
                }
            }
            _ => self.conntrack_update(asked, now),
        }
    }
    fn conntrack_chosen(&self, asked: &Asked, now: Time) -> Vec<(u32, Connection)> {
        let tracking = self.netfilter.tracking();
        let mut all = tracking.numbered(now);
        all.retain(|(id, c)| asked.holds(*id, c, tracking.left(c, now)));
        all
    }
    fn conntrack_text(&self, all: &[(u32, Connection)], asked: &Asked, letter: &str, now: Time) -> String {
        let tracking = self.netfilter.tracking();
        let is = |bit: u8| asked.output & bit != 0;
        let mut out = String::new();
        for (id, c) in all {
            if is(output::SAVE) {
                out += letter;
                out += &tracking.saved_line(c, now);
            } else if is(output::XML) {
                if out.is_empty() {
                    out += XML_BEGINS;
                }
                out += &tracking.xml_line(c, *id, now);
            } else {
                out += &tracking.shown_line(c, is(output::EXTENDED), is(output::ID).then_some(*id), now);
            }
            out.push('\n');
        }
        if is(output::XML) && !is(output::SAVE) && !all.is_empty() {
            out += XML_ENDS;
        }
        out
    }
    fn conntrack_make(&mut self, asked: &Asked, now: Time) -> Result<(), i32> {
        let tuples = asked.tuples().map_err(|e| e.errno)?;
        let new = New {
            tuples,
            timeout: asked.timeout.unwrap_or(0),
            mark: asked.mark.map_or(0, |m| m.0),
            status: asked.status,
            tcp: asked.tcp,
        };
        let to = |n: usize| asked.nat[n].and_then(|(addr, port)| Some((wide(addr?), port)));
        self.netfilter.make_connection(&new, [to(0), to(1)], now)
    }
    /// `mnl_nfct_update_cb`.
    fn conntrack_update(&mut self, asked: &Asked, now: Time) -> Ran {
        let change = Change {
            timeout: asked.timeout,
            mark: asked.mark.map(|(value, mask)| (value, !mask)),
            status: asked.status,
            tcp: asked.tcp,
        };
        let (original, reply) = (
            asked.has("src") || asked.has("dst") || asked.has("protonum"),
            asked.has("reply-src") || asked.has("reply-dst"),
        );
        let (mut stdout, mut stderr, mut count) = (String::new(), String::new(), 0);
        for (id, c) in self.netfilter.tracking().numbered(now) {
            let holds = asked.translation_holds(&c)
                && asked.network_holds(&c)
                && asked.id.is_none_or(|wanted| wanted == id)
                && (!original || asked.direction_holds(&c, false))
                && (!(reply || asked.has("protonum")) || asked.direction_holds(&c, true));
            if !holds || !self.netfilter.tracking().would_change(id, &change, now) {
                continue;
            }
            if let Err(errno) = self.netfilter.tracking_mut().change(id, &change, now) {
                stderr += &format!("Operation failed: {}\n", why(errno, 'U'));
            }
            let all: Vec<_> =
                self.netfilter.tracking().numbered(now).into_iter().filter(|(n, _)| *n == id).collect();
            stdout +=
                &self.conntrack_text(&all, asked, "-U ", now).replace(XML_BEGINS, "").replace(XML_ENDS, "");
            count += 1;
        }
        stderr += &format!("{VERSION}: {count} flow entries have been updated.\n");
        Output { stdout, stderr, status: i32::from(count == 0), ..Output::default() }
    }
}

const XML_BEGINS: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<conntrack>\n";
const XML_ENDS: &str = "</conntrack>\n";
const USAGE: &str = "Usage: conntrack [-L|-D|-F|-C|-I|-A|-U|-G] [TABLE] [OPTIONS]\n\
    Tables: conntrack, expect, dying, unconfirmed\n\
    Options: -s, -d, -r, -q ADDRESS; -p PROTOCOL; -f ipv4|ipv6; -t SECONDS; -u STATUS; -m MARK[/MASK]; -w ZONE; -n, -g, -j [ADDRESS[:PORT]];\n\
    -o xml,extended,id,save; --sport, --dport, --reply-port-src, --reply-port-dst PORT; --state STATE; -z\n";

/// A refusal: of the command line with 2, of what was asked for with 1.
fn conntrack_fails(before: &str, text: &str, exit: i32) -> Ran {
    let hint =
        if exit == 2 { "Try `conntrack -h' or 'conntrack --help' for more information.\n" } else { "" };
    Output::fail(format!("{before}{VERSION}: {text}\n{hint}"), exit, HELP)
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
        let (list, said_, status) = said(&mut net, "conntrack -L -p udp --sport 2000");
        assert_eq!(
            list,
            "udp      17 29 src=10.0.1.1 dst=10.0.2.1 sport=2000 dport=2000 [UNREPLIED] src=10.0.2.1 dst=10.0.2.254 sport=2000 dport=2000 mark=0 use=1\n"
        );
        assert_eq!(said_, "conntrack v1.4.7 (conntrack-tools): 1 flow entries have been shown.\n");
        assert_eq!(status, 0);
        assert_eq!(said(&mut net, "conntrack -C").0, "2\n");
        assert_eq!(said(&mut net, "conntrack -L -n").0.lines().count(), 2);
        assert_eq!(said(&mut net, "conntrack -L -p tcp").0, "");
        let (_, said_, status) = said(&mut net, "conntrack -D -p udp -d 10.0.2.1 --sport 1000");
        assert!(said_.contains("1 flow entries have been deleted") && status == 0, "{said_}");
        assert_eq!(said(&mut net, "conntrack -D -p udp --sport 1000").2, 1);
        assert_eq!(said(&mut net, "cat /proc/sys/net/netfilter/nf_conntrack_count").0, "1\n");
        said(&mut net, "conntrack -F");
        assert_eq!(said(&mut net, "conntrack -C").0, "0\n");
        assert_eq!(said(&mut net, "conntrack -L -x 5").2, 2);
        let now = net.now;
        assert_eq!(net.hosts[1].exec("conntrack -E", now).unsimulated(), Some("conntrack -E"));
    }

    #[test]
    fn a_connection_may_be_made_changed_and_asked_for() {
        let mut net = routed(Kernel::V6_12);
        let of = "-p tcp -s 10.0.1.1 -d 10.0.2.1 --sport 1000 --dport 80";
        let made = said(
            &mut net,
            &format!(
                "conntrack -I {of} --state ESTABLISHED -t 60 -u SEEN_REPLY,ASSURED -m 5 -g 10.0.2.9:8080"
            ),
        );
        assert_eq!(made.1, "conntrack v1.4.7 (conntrack-tools): 1 flow entries have been created.\n");
        let line = "src=10.0.1.1 dst=10.0.2.1 sport=1000 dport=80 src=10.0.2.9 dst=10.0.1.1 sport=8080 dport=1000 [ASSURED]";
        assert_eq!(
            said(&mut net, &format!("conntrack -G {of}")).0,
            format!("tcp      6 60 ESTABLISHED {line} mark=5 use=1\n")
        );
        let again = said(&mut net, &format!("conntrack -I {of} --state CLOSE -t 60"));
        assert!(
            again.1.contains("Operation failed: Such conntrack exists, try -U to update") && again.2 == 1,
            "{again:?}"
        );
        let changed = said(&mut net, &format!("conntrack -U {of} -m 0x10/0xff"));
        assert_eq!(changed.0, format!("tcp      6 60 ESTABLISHED {line} mark=16 use=1\n"));
        assert_eq!(
            said(&mut net, "conntrack -L -g 10.0.2.9:8080 -o save").0.split(" -s").next(),
            Some("-A -t 60 -u SEEN_REPLY,ASSURED")
        );
        for (words, why) in [
            ("-I -p udp -s 10.0.1.1 -d 10.0.2.1 -t 5", "you have to specify `--sport' and `--dport'"),
            ("-L -p tcp --state FOO", "unknown TCP state `FOO'"),
            ("-L -s 10.0.0.0/33", "Invalid netmask"),
            ("-L -s 10.0.0.1 -d fd00::1", "mismatched address family"),
            ("-C -p tcp", "Illegal option `--protonum' with this command"),
        ] {
            let (_, text, status) = said(&mut net, &format!("conntrack {words}"));
            assert!(text.contains(why) && status == 2, "{words}: {text}");
        }
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
