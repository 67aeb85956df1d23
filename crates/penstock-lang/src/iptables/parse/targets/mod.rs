//! Targets: which there are and their options.

mod header;
mod mark;
mod nat;
mod other;
mod set;

use super::matches::Ext;
use super::{Family, Target};

const TABLES: [&[Ext<Target>]; 5] =
    [header::TARGETS, mark::TARGETS, nat::TARGETS, other::TARGETS, set::TARGETS];

/// Verdicts: names without options.
pub(super) const STANDARD: [&str; 4] = ["ACCEPT", "DROP", "RETURN", "QUEUE"];

/// Targets that 1.4.4 did not have, or had otherwise.
const YOUNGER: [&str; 3] = ["TEE", "CT", "AUDIT"];

/// The target of this name.
pub(super) fn find(name: &str, family: Family) -> Option<&'static Ext<Target>> {
    let mut all = TABLES.iter().flat_map(|t| t.iter());
    all.find(|e| e.name == name && e.family.is_none_or(|f| f == family))
}

/// All there are, by name.
pub(super) fn names(family: Family) -> Vec<&'static str> {
    let all = TABLES.iter().flat_map(|t| t.iter());
    let mut names: Vec<_> = all.filter(|e| e.family.is_none_or(|f| f == family)).map(|e| e.name).collect();
    names.sort_unstable();
    names
}

/// Whether the program refuses a chain of this name: it has a target called so. The old one leaves the built-in
/// targets' names to the tables.
pub(super) fn is_target(name: &str, family: Family, old: bool) -> bool {
    match old {
        true => find(name, family).is_some() && !YOUNGER.contains(&name),
        false => STANDARD.contains(&name) || find(name, family).is_some(),
    }
}

/// Our advice where there is no such target.
pub(super) fn advice(name: &str, family: Family) -> String {
    let program = family.program();
    match name {
        "IMQ" => "IMQ was never part of Linux. Today an ifb device does its work: ip link add ifb0 type ifb; \
                  ip link set ifb0 up; tc qdisc add dev eth0 handle ffff: ingress; tc filter add dev eth0 parent ffff: \
                  protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0; then shape on ifb0"
            .to_owned(),
        "TPROXY" | "SYNPROXY" | "HMARK" | "IDLETIMER" | "LED" | "RATEEST" | "SECMARK" | "CONNSECMARK"
        | "TCPOPTSTRIP" | "CLUSTERIP" | "DNPT" | "SNPT" => {
            "not simulated: leave the rule out to see what the others do".to_owned()
        }
        "ULOG" => "ULOG left Linux with 3.17: -j NFLOG does its work".to_owned(),
        "ROUTE" => "ROUTE was a patch. Today: -j MARK with ip rule add fwmark, or -j TEE".to_owned(),
        _ => format!(
            "create the chain first: {program} -N {name}; or one of ACCEPT DROP RETURN {}",
            names(family).join(" ")
        ),
    }
}
