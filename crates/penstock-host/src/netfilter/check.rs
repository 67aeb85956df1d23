//! What the kernel refuses of a rule: a match or target where it may not stand, chains in a circle.
//!
//! Follows: linux v6.12 `net/netfilter/x_tables.c` `xt_check_match`, `xt_check_target`, `ip_tables.c`
//! `mark_source_chains`, the `checkentry` functions of `xt_*.c`, `ipt_REJECT.c`, `ipt_ECN.c`.

use super::Hook;
use super::asks::hashlimit::{Errno, refused};
use super::eval::limit_credits;
use super::state::TableState;
use penstock_lang::iptables::{
    Asks, Edit, Failure, Family, Match, Program, Rule, Table, Target, reject_names,
};
use penstock_model::Kernel;

/// An errno's text and our advice.
type Refusal = (&'static str, String);

pub(super) const EINVAL: &str = "Invalid argument. Run `dmesg' for more information";
const ENOENT: &str = "No chain/target/match by that name";
const ERANGE: &str = "Numerical result out of range";
const ELOOP: &str = "Too many levels of symbolic links";

const IN: u8 = Hook::Input.bit();
const OUT: u8 = Hook::Output.bit();
const PRE: u8 = Hook::Prerouting.bit();
const POST: u8 = Hook::Postrouting.bit();
const FORWARD: u8 = Hook::Forward.bit();

fn refuse<T>(errno: &'static str, help: impl Into<String>) -> Result<T, Refusal> {
    Err((errno, help.into()))
}

/// Whether burst times cost leaves 32 bits (`limit_mt_check`), both as numbers of the rule and as the kernel's credits.
fn limit_overflows(period: u32, burst: u32, hz: u32) -> bool {
    burst == 0 || limit_credits(period.wrapping_mul(burst), hz) < limit_credits(period, hz)
}

/// Whether a rule is for this protocol and no other.
fn is_for(rule: &Rule, protocol: u8) -> bool {
    rule.protocol == Some((protocol, false))
}

fn needs(rule: &Rule, protocol: u8, what: &str, name: &str) -> Result<(), Refusal> {
    match is_for(rule, protocol) {
        true => Ok(()),
        false => refuse(EINVAL, format!("{what} needs -p {name}")),
    }
}

fn only_hooks(hooks: u8, allowed: u8, what: &str, chains: &str) -> Result<(), Refusal> {
    match hooks & !allowed {
        0 => Ok(()),
        _ => refuse(EINVAL, format!("{what} works in {chains}")),
    }
}

fn only_table(table: Table, wanted: Table, what: &str) -> Result<(), Refusal> {
    match table == wanted {
        true => Ok(()),
        false => {
            let name = wanted.name();
            refuse(EINVAL, format!("{what} works in the {name} table alone: -t {name}"))
        }
    }
}

fn check_match(
    m: &Match,
    rule: &Rule,
    table: Table,
    hooks: u8,
    (kernel, family): (Kernel, Family),
) -> Result<(), Refusal> {
    match m {
        // Of `ADDR_TYPES`, with IPv6: no broadcast, no blackhole, and nothing from PROHIBIT on (`addrtype_mt_checkentry_v1`).
        Match::Addrtype { src, dst, .. } if family == Family::Ip6 && (src.0 | dst.0) & 0x0f48 != 0 => {
            refuse(EINVAL, "IPv6 has no broadcast; blackhole, prohibit, throw and nat are not matched there")
        }
        Match::Tcp(_) => needs(rule, 6, "-m tcp", "tcp"),
        Match::Udp(..) => needs(rule, 17, "-m udp", "udp"),
        Match::Icmp { .. } => match rule.protocol {
            Some((1 | 58, false)) => Ok(()),
            _ => refuse(EINVAL, "-m icmp needs -p icmp, -m icmp6 -p icmpv6"),
        },
        Match::Limit { period, burst } if limit_overflows(*period, *burst, kernel.hz()) => refuse(
            ERANGE,
            "burst times the gap between packets is too long; take a smaller --limit-burst, not 0",
        ),
        Match::Mac { .. } => only_hooks(hooks, PRE | IN | FORWARD, "-m mac", "PREROUTING, INPUT and FORWARD"),
        Match::Addrtype { limit_in: true, limit_out: true, .. } => {
            refuse(EINVAL, "--limit-iface-in and --limit-iface-out exclude each other")
        }
        Match::Addrtype { limit_out: true, .. } if hooks & (PRE | IN) != 0 => {
            refuse(EINVAL, "--limit-iface-out needs a way out: FORWARD, OUTPUT or POSTROUTING")
        }
        Match::Addrtype { limit_in: true, .. } if hooks & (POST | OUT) != 0 => {
            refuse(EINVAL, "--limit-iface-in needs a way in: PREROUTING, INPUT or FORWARD")
        }
        Match::Ecn { ece, cwr, .. } if ece.is_some() || cwr.is_some() => {
            needs(rule, 6, "-m ecn with ECE or CWR", "tcp")
        }
        Match::Worded(_, Asks::Hashlimit(h)) => match refused(h, kernel.hz()) {
            Some((errno, help)) => refuse(if errno == Errno::Range { ERANGE } else { EINVAL }, help),
            None => Ok(()),
        },
        Match::Worded(_, Asks::Recent(r)) => match super::asks::recent::refused(r) {
            Some((errno, help)) => refuse(errno, help),
            None => Ok(()),
        },
        Match::Worded(p, _) | Match::Plain(p) => match p.name.as_str() {
            "owner" => only_hooks(hooks, OUT | POST, "-m owner", "OUTPUT and POSTROUTING"),
            "tcpmss" => needs(rule, 6, "-m tcpmss", "tcp"),
            "realm" => only_hooks(
                hooks,
                POST | FORWARD | OUT | IN,
                "-m realm",
                "INPUT, FORWARD, OUTPUT and POSTROUTING",
            ),
            "rpfilter" => {
                if !matches!(table, Table::Raw | Table::Mangle) {
                    return refuse(EINVAL, "-m rpfilter works in the tables raw and mangle alone: -t raw");
                }
                only_hooks(hooks, PRE, "-m rpfilter", "PREROUTING")
            }
            "policy" if p.save.starts_with(" --dir out") => only_hooks(
                hooks,
                FORWARD | OUT | POST,
                "-m policy --dir out",
                "FORWARD, OUTPUT and POSTROUTING",
            ),
            "policy" => {
                only_hooks(hooks, PRE | IN | FORWARD, "-m policy --dir in", "PREROUTING, INPUT and FORWARD")
            }
            "physdev"
                if hooks & OUT != 0
                    && p.save.contains("out")
                    && !p.save.contains(" --physdev-is-bridged") =>
            {
                refuse(EINVAL, "--physdev-out in OUTPUT is for bridged packets alone")
            }
            "string" => {
                let algo = p.save.split(" --algo ").last().unwrap_or("").split(' ').next().unwrap_or("");
                match algo {
                    "bm" | "kmp" | "fsm" => Ok(()),
                    _ => refuse(ENOENT, "--algo bm or --algo kmp"),
                }
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_target(rule: &Rule, table: Table, family: Family, hooks: u8, kernel: Kernel) -> Result<(), Refusal> {
    let target = &rule.target;
    let name = target.name(family);
    match target {
        Target::Edit(Edit::Tos { .. }) | Target::Edit(Edit::Dscp(_)) | Target::Edit(Edit::Ttl { .. }) => {
            only_table(table, Table::Mangle, name)
        }
        Target::Edit(Edit::Ecn { ece, cwr, .. }) => {
            only_table(table, Table::Mangle, name)?;
            match ece.is_some() || cwr.is_some() {
                true => needs(rule, 6, "ECN of TCP", "tcp"),
                false => Ok(()),
            }
        }
        Target::Edit(Edit::Classify(_)) => {
            if kernel == Kernel::V2_6_35 {
                only_table(table, Table::Mangle, name)?;
            }
            only_hooks(hooks, OUT | FORWARD | POST, name, "OUTPUT, FORWARD and POSTROUTING")
        }
        Target::Edit(Edit::Connmark { .. }) if kernel == Kernel::V2_6_35 => {
            only_table(table, Table::Mangle, name)
        }
        Target::Reject(at) => {
            only_table(table, Table::Filter, name)?;
            only_hooks(hooks, IN | FORWARD | OUT, name, "INPUT, FORWARD and OUTPUT")?;
            match reject_names(family).get(usize::from(*at)) {
                Some((_, _, None)) => needs(rule, 6, "--reject-with tcp-reset", "tcp"),
                _ => Ok(()),
            }
        }
        Target::Set(_, t) if t.map.is_some() => {
            only_table(table, Table::Mangle, "SET --map-set")?;
            match t.map_prio || t.map_queue {
                true => {
                    let chains = "FORWARD, OUTPUT and POSTROUTING";
                    only_hooks(hooks, FORWARD | OUT | POST, "--map-prio and --map-queue", chains)
                }
                false => Ok(()),
            }
        }
        Target::Notrack(_) => only_table(table, Table::Raw, name),
        Target::Log(p) if p.name == "TRACE" => only_table(table, Table::Raw, name),
        Target::Log(p) if p.name == "CHECKSUM" => only_table(table, Table::Mangle, name),
        Target::Zone(..) => only_table(table, Table::Raw, name),
        Target::Plain(p) => match p.name.as_str() {
            "CT" => {
                only_table(table, Table::Raw, name)?;
                match p.save.contains("--helper") || p.save.contains("--timeout") {
                    true => refuse(ENOENT, "there are no helpers and timeout policies on this machine"),
                    false => Ok(()),
                }
            }
            "SNAT" => {
                only_table(table, Table::Nat, name)?;
                only_hooks(hooks, POST | IN, name, "POSTROUTING and INPUT")
            }
            "DNAT" | "REDIRECT" => {
                only_table(table, Table::Nat, name)?;
                only_hooks(hooks, PRE | OUT, name, "PREROUTING and OUTPUT")
            }
            "MASQUERADE" => {
                only_table(table, Table::Nat, name)?;
                only_hooks(hooks, POST, name, "POSTROUTING")
            }
            "NETMAP" => {
                only_table(table, Table::Nat, name)?;
                only_hooks(hooks, PRE | OUT | POST | IN, name, "PREROUTING, OUTPUT, POSTROUTING and INPUT")
            }
            "TCPMSS" => tcpmss(rule, hooks, p.save.contains("clamp")),
            "NFQUEUE" if p.save.starts_with(" --queue-balance 0:65535") => {
                refuse(EINVAL, "65535 queues at most")
            }
            "TEE" if matches!(p.save.split(' ').nth(2), Some("0.0.0.0" | "::")) => {
                refuse(EINVAL, "--gateway must be a neighbour")
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn tcpmss(rule: &Rule, hooks: u8, clamp: bool) -> Result<(), Refusal> {
    needs(rule, 6, "TCPMSS", "tcp")?;
    if clamp {
        only_hooks(hooks, FORWARD | OUT | POST, "TCPMSS to PMTU", "FORWARD, OUTPUT and POSTROUTING")?;
    }
    let syn = |m: &Match| matches!(m, Match::Tcp(t) if t.flags.1 & 0x02 != 0 && !t.invert_flags);
    match rule.matches.iter().any(syn) {
        true => Ok(()),
        false => refuse(EINVAL, "TCPMSS is for packets with SYN: --tcp-flags SYN,RST SYN"),
    }
}

impl TableState {
    /// What the kernel says of a rule in a chain that these hooks lead to.
    pub(super) fn check_rule(&self, rule: &Rule, hooks: u8, program: Program) -> Result<(), Failure> {
        let check = || {
            for m in &rule.matches {
                check_match(m, rule, self.table, hooks, (program.kernel, program.family))?;
            }
            check_target(rule, self.table, self.family, hooks, program.kernel)
        };
        check().map_err(|(errno, help)| program.refused(errno, &help))
    }

    /// By chain, the hooks that lead to it. A packet must come to an end: no chain a hook leads to may be reached from
    /// itself. Chains no hook leads to may be in a circle, as in the kernel.
    pub(super) fn reach(&self, program: Program) -> Result<Vec<u8>, Failure> {
        let next: Vec<Vec<usize>> = self
            .chains
            .iter()
            .map(|chain| {
                let mut next: Vec<usize> = chain
                    .rules
                    .iter()
                    .filter_map(|c| match &c.rule.target {
                        Target::Jump(name) | Target::Goto(name) => self.index(name),
                        _ => None,
                    })
                    .collect();
                next.sort_unstable();
                next.dedup();
                next
            })
            .collect();
        let mut reached = vec![0u8; self.chains.len()];
        for start in 0..self.built_in_count() {
            let bit = Hook::of_chain(&self.chains[start].name).map_or(0, Hook::bit);
            // Depth first, with the path kept: (chain, place in its list).
            let mut path = vec![(start, 0usize)];
            reached[start] |= bit;
            while let Some((chain, place)) = path.last_mut() {
                let Some(&to) = next[*chain].get(*place) else {
                    path.pop();
                    continue;
                };
                *place += 1;
                if path.iter().any(|p| p.0 == to) {
                    let help = format!("{} would be reached from itself", self.chains[to].name);
                    return Err(program.refused(ELOOP, &help));
                }
                // What was reached from this hook before was walked to its end.
                if reached[to] & bit == 0 {
                    reached[to] |= bit;
                    path.push((to, 0));
                }
            }
        }
        Ok(reached)
    }

    /// The kernel's look at a whole table.
    pub(super) fn check_all(&self, program: Program) -> Result<(), Failure> {
        let reach = self.reach(program)?;
        for (chain, hooks) in self.chains.iter().zip(reach) {
            for counted in &chain.rules {
                self.check_rule(&counted.rule, hooks, program)?;
            }
        }
        Ok(())
    }
}
