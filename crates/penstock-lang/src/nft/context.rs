//! What the statements of a rule say of the packet's protocols so far, and what goes with it.
//!
//! Follows: nftables 1.0.6 `proto.c` `proto_ctx_update`, `evaluate.c` `__expr_evaluate_payload`, `payload.c` `payload_gen_dependency`.

use super::data::{Compare, Expr, Family, Statement, Type};
use super::{Fault, Pos};

/// Headers above IP by number (`proto_inet_service`).
const TRANSPORTS: [(u128, &str); 11] = [
    (1, "icmp"),
    (2, "igmp"),
    (6, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (50, "esp"),
    (51, "ah"),
    (58, "icmpv6"),
    (108, "comp"),
    (132, "sctp"),
    (136, "udplite"),
];
/// What is known of a layer where the protocol is none of ours (`proto_unknown`).
const UNKNOWN: &str = "unknown";

/// What the statements before say of the packet's protocols.
#[derive(Default)]
pub(super) struct Known {
    /// `ip` or `ip6`.
    network: Option<&'static str>,
    /// The header above: what was told last.
    transport: Option<&'static str>,
    /// All that a comparison told: more than one leave no header to look at.
    told: Vec<&'static str>,
    /// A statement stands before that ends the rule.
    pub(super) over: bool,
    /// What a statement needs, to stand before the whole rule (`stmt_reject_gen_dependency`).
    pub(super) first: Option<Statement>,
}

impl Known {
    /// What a table's family says by itself.
    pub(super) fn of(family: Family) -> Known {
        let network = match family {
            Family::Ip => Some("ip"),
            Family::Ip6 => Some("ip6"),
            _ => None,
        };
        Known { network, ..Known::default() }
    }
    /// `ip` or `ip6`, where it is known which.
    pub(super) fn carries(&self) -> Option<&'static str> {
        self.network.filter(|&n| n != UNKNOWN)
    }
    /// Whether the header above IP is known: ports can be translated.
    pub(super) fn has_transport(&self) -> bool {
        self.transport.is_some()
    }
    /// Whether a reset can answer: the header is TCP's or not known (`stmt_evaluate_reset`).
    pub(super) fn may_be_tcp(&self) -> bool {
        self.transport.is_none_or(|t| t == "tcp")
    }
    /// A header needs this one of the network: told where nothing was.
    fn needs_network(&mut self, network: &'static str) {
        self.network.get_or_insert(network);
    }
    /// The packet is one of TCP from here on, where nothing was told.
    pub(super) fn needs_tcp(&mut self) {
        if self.transport.is_none() {
            self.tell("tcp");
            let tcp = Expr::Value(6, Type::Protocol);
            self.first = Some(Statement::Match(Expr::Meta("l4proto"), Compare::Is, tcp));
        }
    }
    /// The packet is one of this family from here on, where nothing was told.
    pub(super) fn needs_answer(&mut self, network: &'static str) {
        if self.network.is_none() {
            self.network = Some(network);
            let family = Expr::Value(if network == "ip" { 2 } else { 10 }, Type::NfProto);
            self.first = Some(Statement::Match(Expr::Meta("nfproto"), Compare::Is, family));
        }
    }
    /// The header that ports belong to, where one is told.
    pub(super) fn with_ports(&self) -> Option<&'static str> {
        match self.told[..] {
            [one @ ("tcp" | "udp")] => Some(one),
            _ => None,
        }
    }

    fn tell(&mut self, transport: &'static str) {
        self.transport = Some(transport);
        if !self.told.contains(&transport) {
            self.told.push(transport);
        }
    }

    /// A header is looked at: it must go with those before.
    ///
    /// # Errors
    ///
    /// One packet cannot have both.
    pub(super) fn header(&mut self, header: &'static str, pos: Pos, family: Family) -> Result<(), Fault> {
        let conflict = |before: &str| {
            let message = format!("conflicting protocols specified: {before} vs. {header}");
            Err(Fault::new(pos, message, "one packet has one of them"))
        };
        match header {
            "frag" | "exthdr" => {
                if self.network == Some("ip") {
                    let help = "IPv4 has no extension headers: ip frag-off";
                    return Err(Fault::new(pos, "cannot use exthdr with ip", help));
                }
                self.network = Some("ip6");
                Ok(())
            }
            "ip" | "ip6" => match self.network {
                Some(before) if before != header => conflict(before),
                _ => {
                    self.network = Some(header);
                    Ok(())
                }
            },
            _ if !TRANSPORTS.iter().any(|t| t.1 == header) => Ok(()),
            _ => match self.transport {
                None => {
                    if let Some(UNKNOWN) = self.network {
                        return conflict(UNKNOWN);
                    }
                    let ties = matches!(family, Family::Inet | Family::Netdev | Family::Bridge);
                    match header {
                        "icmp" | "igmp" if ties => self.needs_network("ip"),
                        "icmpv6" if ties => self.needs_network("ip6"),
                        _ => {}
                    }
                    self.tell(header);
                    Ok(())
                }
                Some(_) if self.told.len() > 1 => {
                    conflict(self.told.iter().find(|t| **t != header).copied().unwrap_or(UNKNOWN))
                }
                Some(before) if before != header => conflict(before),
                Some(_) => Ok(()),
            },
        }
    }

    /// What a comparison tells of the protocols (`relational_expr_pctx_update`).
    pub(super) fn learn(&mut self, left: &Expr, how: Compare, right: &Expr, family: Family) {
        if !matches!(how, Compare::Is | Compare::Equal) {
            return;
        }
        match right {
            Expr::Value(n, _) => self.learn_one(left, *n, family),
            Expr::Set(set) => {
                for element in &set.elements {
                    if let Expr::Value(n, _) = &element.key {
                        self.learn_one(left, *n, family);
                    }
                }
            }
            _ => {}
        }
    }

    fn learn_one(&mut self, left: &Expr, value: u128, family: Family) {
        let transport = TRANSPORTS.iter().find(|t| t.0 == value).map(|t| t.1);
        match left {
            Expr::Meta("nfproto") => {
                self.network = Some(match value {
                    2 => "ip",
                    10 => "ip6",
                    _ => UNKNOWN,
                });
            }
            Expr::Meta("protocol") if matches!(family, Family::Netdev | Family::Bridge) => {
                self.network = Some(ethernet(value).unwrap_or(UNKNOWN));
            }
            Expr::Field("ether", "type") => self.network = ethernet(value).or(self.network),
            Expr::Meta("l4proto") => self.tell(transport.unwrap_or(UNKNOWN)),
            Expr::Field("ip", "protocol") | Expr::Field("ip6", "nexthdr") => {
                if let Some(transport) = transport {
                    self.tell(transport);
                }
            }
            _ => {}
        }
    }
}

/// The network header of an Ethernet type.
fn ethernet(value: u128) -> Option<&'static str> {
    match value {
        0x0800 => Some("ip"),
        0x86dd => Some("ip6"),
        0x0806 => Some("arp"),
        _ => None,
    }
}
