//! The chains of Linux 2.2's `ipchains`: input, forward, output and the user's, and a packet's way through them.
//!
//! Follows: linux 2.2 `net/ipv4/ip_fw.c` (in 2.4 `net/ipv4/netfilter/ipchains_core.c`): `ip_fw_check`, `ip_rule_match`,
//! `ip_fw_domatch`, `ip_fw_ctl`; their place among the hooks is that of 2.4's `ip_fw_compat.c`, which is where 2.2 called them: input
//! before routing, forward, output behind it, for what is made here too.
//! Differs: MASQ lets pass and REDIRECT too (no address is ever translated); nothing listens to `-l` and `-o`.

use super::eval::{Ip, ports, set_tos};
use super::{Devices, Fate, Hook};
use penstock_lang::ipchains::{Action, BUILT_IN, Chain, Command, Failure, Mark, Rule, list, print_rule};
use penstock_packet::{L4, Skb, TcpFlags};

/// ICMP's code of "port unreachable", which REJECT answers.
const PORT_UNREACH: u8 = 3;

/// Where a rule leads once names are looked up (`fw->branch`, `fw->simplebranch`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Branch {
    Next,
    Return,
    Verdict(Fate),
    Chain(u32),
}

/// All chains.
#[derive(Clone, PartialEq, Debug)]
pub struct Ipchains {
    /// The built-in ones first, then the user's in the order in which they were made.
    chains: Vec<Chain>,
    /// By chain and rule.
    branches: Vec<Vec<Branch>>,
    /// Whether any command has changed anything.
    pub(super) touched: bool,
}

impl Default for Ipchains {
    fn default() -> Ipchains {
        let chain = |name: &&str| Chain {
            name: (*name).to_owned(),
            policy: Some("ACCEPT".to_owned()),
            packets: 0,
            bytes: 0,
            references: 0,
            rules: Vec::new(),
        };
        Ipchains {
            chains: BUILT_IN.iter().map(chain).collect(),
            branches: vec![Vec::new(); BUILT_IN.len()],
            touched: false,
        }
    }
}

fn verdict(name: &str) -> Fate {
    match name {
        "DENY" => Fate::Drop,
        "REJECT" => Fate::Reject(Some(PORT_UNREACH)),
        _ => Fate::Accept,
    }
}

fn no_target(name: &str) -> Failure {
    let help = format!(
        "targets are ACCEPT DENY REJECT MASQ REDIRECT RETURN and the user's chains; ipchains -N {name} makes one"
    );
    Failure::refused("No target by that name", &help)
}

fn bad_rule() -> Failure {
    Failure::refused("bad rule (does a matching rule exist in that chain?)", "ipchains -L -n shows the rules")
}

impl Ipchains {
    /// The built-in chain of a hook.
    pub(super) const fn of_hook(hook: Hook) -> Option<usize> {
        match hook {
            Hook::Prerouting => Some(0),
            Hook::Forward => Some(1),
            Hook::Postrouting => Some(2),
            Hook::Input | Hook::Output => None,
        }
    }
    /// Its chains: input, forward, output, then the user's.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Takes a packet through the chain of a hook; mark and ToS may change.
    //= linux v2.2 net/ipv4/ip_fw.c ip_fw_check
    pub(super) fn run(&mut self, hook: Hook, skb: &mut Skb, devices: Devices<'_>, looked: &mut u64) -> Fate {
        let Some(entry) = Ipchains::of_hook(hook) else { return Fate::Accept };
        // In the forward chain -i is the interface that the packet leaves by.
        let iface = if hook == Hook::Prerouting { devices.input } else { devices.output };
        let bytes = u64::from(skb.network_len());
        let mut back: Vec<(usize, usize)> = Vec::new();
        let (mut chain, mut at) = (entry, 0);
        loop {
            let Some((rule, packets, count)) = self.chains[chain].rules.get_mut(at) else {
                match back.pop() {
                    Some(place) => (chain, at) = place,
                    None => {
                        let last = &mut self.chains[entry];
                        last.packets += 1;
                        last.bytes += bytes;
                        return verdict(last.policy.as_deref().unwrap_or_default());
                    }
                }
                continue;
            };
            let branch = self.branches[chain][at];
            *looked += 1;
            at += 1;
            if !fits(rule, skb, iface) {
                continue;
            }
            *packets += 1;
            *count += bytes;
            let (and, xor) = rule.tos;
            set_tos(skb, |tos| (tos & and) ^ xor);
            match rule.mark {
                Mark::Set(n) => skb.mark = n,
                Mark::Add(n) => skb.mark = skb.mark.wrapping_add(n),
            }
            match branch {
                Branch::Next => {}
                Branch::Verdict(fate) => return fate,
                Branch::Return => at = usize::MAX,
                Branch::Chain(to) => {
                    let to = to as usize;
                    // "Loop detected": the packet is blocked.
                    if to == chain || back.iter().any(|b| b.0 == to) {
                        return Fate::Drop;
                    }
                    back.push((chain, at));
                    (chain, at) = (to, 0);
                }
            }
        }
    }

    /// Carries out a command; answers what it prints. One that is refused has changed nothing.
    ///
    /// # Errors
    /// ipchains' message and exit status.
    pub(super) fn execute(&mut self, command: &Command) -> Result<String, Failure> {
        let mut new = self.clone();
        let mut printed = command.warnings.clone();
        let told = |rules: &[Rule]| match command.verbose {
            true => rules.iter().map(print_rule).collect(),
            false => String::new(),
        };
        match &command.action {
            Action::Append(chain, rules) => {
                printed += &told(rules);
                let at = new.for_rules(chain, rules)?;
                new.chains[at].rules.extend(rules.iter().map(|r| (r.clone(), 0, 0)));
            }
            Action::Insert(chain, number, rules) => {
                printed += &told(rules);
                let at = new.for_rules(chain, rules)?;
                for rule in rules {
                    let place = *number as usize - 1;
                    if place > new.chains[at].rules.len() {
                        return Err(bad_rule());
                    }
                    new.chains[at].rules.insert(place, (rule.clone(), 0, 0));
                }
            }
            Action::Replace(chain, number, rule) => {
                printed += &told(std::slice::from_ref(rule));
                let at = new.for_rules(chain, std::slice::from_ref(rule))?;
                let place = new.chains[at].rules.get_mut(*number as usize - 1).ok_or_else(bad_rule)?;
                *place = ((**rule).clone(), 0, 0);
            }
            Action::Delete(chain, rules) => {
                printed += &told(rules);
                let at = new.find(chain)?;
                for rule in rules {
                    new.known_target(&rule.target)?;
                    let found = new.chains[at].rules.iter().position(|r| r.0.same(rule));
                    new.chains[at].rules.remove(found.ok_or_else(bad_rule)?);
                }
            }
            Action::DeleteNumber(chain, number) => {
                let at = new.find(chain)?;
                let place = *number as usize - 1;
                if place >= new.chains[at].rules.len() {
                    // ENOENT, which libipfwc takes for a missing chain.
                    return Err(Failure::refused("No chain by that name", "there is no rule of that number"));
                }
                new.chains[at].rules.remove(place);
            }
            Action::NewChain(name) => {
                if new.index(name).is_some() {
                    return Err(Failure::refused("Chain already exists", ""));
                }
                new.chains.push(Chain {
                    name: name.clone(),
                    policy: None,
                    packets: 0,
                    bytes: 0,
                    references: 0,
                    rules: Vec::new(),
                });
            }
            Action::DeleteChain(name) => printed += &new.delete_chains(name.as_deref(), command.verbose)?,
            Action::Flush(name) => {
                for at in new.all_or(name.as_deref())? {
                    if command.verbose {
                        printed += &format!("Flushing chain `{}'\n", new.chains[at].name);
                    }
                    new.chains[at].rules.clear();
                }
            }
            Action::Zero(name) => {
                for at in new.all_or(name.as_deref())? {
                    if command.verbose {
                        printed += &format!("Zeroing chain `{}'\n", new.chains[at].name);
                    }
                    new.chains[at].rules.iter_mut().for_each(|r| (r.1, r.2) = (0, 0));
                }
            }
            Action::Policy(name, policy) => {
                let at = new.find(name)?;
                new.chains[at].policy = Some(policy.clone());
            }
            Action::List(listing) => {
                let all = new.all_or(listing.chain.as_deref())?;
                let chains: Vec<&Chain> = all.iter().map(|&at| &new.chains[at]).collect();
                printed += &list(&chains, listing);
                if listing.zero {
                    new.chains.iter_mut().flat_map(|c| &mut c.rules).for_each(|r| (r.1, r.2) = (0, 0));
                }
            }
            Action::Say(text) => return Ok(text.clone()),
        }
        new.compile();
        new.touched |= !matches!(command.action, Action::List(_));
        *self = new;
        Ok(printed)
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|c| c.name == name)
    }
    fn find(&self, name: &str) -> Result<usize, Failure> {
        let help = format!("there is no chain {name}; ipchains -N {name} makes one");
        self.index(name).ok_or_else(|| Failure::refused("No chain by that name", &help))
    }
    fn all_or(&self, name: Option<&str>) -> Result<Vec<usize>, Failure> {
        match name {
            Some(name) => Ok(vec![self.find(name)?]),
            None => Ok((0..self.chains.len()).collect()),
        }
    }
    fn known_target(&self, name: &str) -> Result<(), Failure> {
        let special = ["", "ACCEPT", "DENY", "REJECT", "REDIRECT", "MASQ", "RETURN"].contains(&name);
        let users = self.index(name).is_some_and(|at| self.chains[at].policy.is_none());
        if special || users { Ok(()) } else { Err(no_target(name)) }
    }
    /// The chain that rules are for, all of which may stand there.
    fn for_rules(&self, chain: &str, rules: &[Rule]) -> Result<usize, Failure> {
        let at = self.index(chain).ok_or_else(|| no_target(chain))?;
        rules.iter().try_for_each(|r| self.known_target(&r.target))?;
        Ok(at)
    }
    //= linux v2.2 net/ipv4/ip_fw.c del_chain
    fn delete_chains(&mut self, name: Option<&str>, verbose: bool) -> Result<String, Failure> {
        let names: Vec<String> = match name {
            Some(name) => vec![name.to_owned()],
            None => self.chains.iter().filter(|c| c.policy.is_none()).map(|c| c.name.clone()).collect(),
        };
        let mut printed = String::new();
        for name in names {
            if verbose {
                printed += &format!("Deleting chain `{name}'\n");
            }
            let at = self.find(&name)?;
            let chain = &self.chains[at];
            if chain.policy.is_some() || chain.references > 0 {
                return Err(Failure::refused(
                    "Device or resource busy",
                    "a rule jumps to it, or it is built in",
                ));
            }
            if !chain.rules.is_empty() {
                return Err(Failure::refused(
                    "Chain is not empty",
                    &format!("ipchains -F {name} empties it"),
                ));
            }
            self.chains.remove(at);
        }
        Ok(printed)
    }

    /// Looks up where rules lead, and counts who is jumped to.
    fn compile(&mut self) {
        let names: Vec<String> = self.chains.iter().map(|c| c.name.clone()).collect();
        let mut references = vec![0; names.len()];
        let mut branch = |rule: &Rule| match rule.target.as_str() {
            "" => Branch::Next,
            "RETURN" => Branch::Return,
            "ACCEPT" | "DENY" | "REJECT" | "REDIRECT" | "MASQ" => Branch::Verdict(verdict(&rule.target)),
            other => match names.iter().position(|n| n == other) {
                Some(at) => {
                    references[at] += 1;
                    Branch::Chain(at as u32)
                }
                None => Branch::Next,
            },
        };
        self.branches = self.chains.iter().map(|c| c.rules.iter().map(|r| branch(&r.0)).collect()).collect();
        for (chain, count) in self.chains.iter_mut().zip(references) {
            chain.references = count;
        }
    }

    /// What is configured and does nothing to packets here, in sentences.
    pub(super) fn unsimulated(&self) -> Vec<String> {
        let policies = self.chains.iter().filter_map(|c| c.policy.as_deref());
        let targets = self.chains.iter().flat_map(|c| &c.rules).map(|r| r.0.target.as_str());
        let all: Vec<&str> = policies.chain(targets).collect();
        let named = |name: &&&str| all.contains(*name);
        let sentence = |name: &&str| format!("ipchains -j {name}: addresses and ports are not translated");
        ["MASQ", "REDIRECT"].iter().filter(named).map(sentence).collect()
    }
}

/// Whether a packet fits a rule.
//= linux v2.2 net/ipv4/ip_fw.c ip_rule_match
fn fits(r: &Rule, skb: &Skb, iface: &str) -> bool {
    let Some(ip) = Ip::of(skb) else { return false };
    if !r.src.matches(ip.src) || !r.dst.matches(ip.dst) {
        return false;
    }
    let named =
        if r.iface_wild || r.iface.is_empty() { iface.starts_with(&r.iface) } else { iface == r.iface };
    if named == r.not_iface {
        return false;
    }
    let later = ip.later_fragment;
    if r.fragment.is_some_and(|invert| later == invert) {
        return false;
    }
    // A later fragment never fits -y, nor its inversion.
    if let Some(invert) = r.syn {
        let first = match skb.l4 {
            L4::Tcp(t) => {
                t.flags.has(TcpFlags::SYN) && !t.flags.has(TcpFlags::ACK) && !t.flags.has(TcpFlags::RST)
            }
            _ => false,
        };
        if later || first == invert {
            return false;
        }
    }
    if r.protocol == 0 {
        return true;
    }
    if (u16::from(ip.protocol) == r.protocol) == r.not_protocol {
        return false;
    }
    let (source, destination) = match (later, skb.l4) {
        (true, _) => (None, None),
        (false, L4::Icmp(i)) => (Some(i.ty.into()), Some(i.code.into())),
        (false, _) => {
            let (source, destination) = ports(skb).unwrap_or((0xffff, 0xffff));
            (Some(source), Some(destination))
        }
    };
    r.sports.matches(source) && r.dports.matches(destination)
}

#[cfg(test)]
mod tests {
    use super::super::{Devices, Fate, Hook, Netfilter};
    use crate::tests::udp;
    use penstock_lang::{ipchains, token};
    use penstock_model::Time;
    use penstock_packet::Skb;

    fn run(nf: &mut Netfilter, line: &str) -> Result<String, String> {
        let command = ipchains::parse(&token::words(line).unwrap()).map_err(|f| f.stderr)?;
        nf.execute_ipchains(&command).map_err(|f| f.stderr)
    }
    fn made(lines: &[&str]) -> Netfilter {
        let mut nf = Netfilter::default();
        for line in lines {
            run(&mut nf, line).unwrap_or_else(|e| panic!("{line}: {e}"));
        }
        nf
    }
    fn through(nf: &mut Netfilter, hook: Hook, skb: &mut Skb) -> Fate {
        nf.run(
            hook,
            skb,
            Devices { input: "eth0", output: "eth1", fib: None, fib6: None, ports: None },
            Time::ZERO,
        )
    }

    #[test]
    fn marks_and_tos_of_what_leaves() {
        let mut nf = made(&[
            "ipchains -A output -d 10.0.0.2 -m 2",
            "ipchains -A output -i eth1 -m +5 -t 0x01 0x10",
            "ipchains -A output -i eth0 -m 9",
        ]);
        assert!(nf.busy(Hook::Postrouting) && nf.busy(Hook::Prerouting) && !nf.busy(Hook::Output));
        let mut packet = udp("10.0.0.1", "10.0.0.2", 100);
        assert_eq!(through(&mut nf, Hook::Postrouting, &mut packet), Fate::Accept);
        assert_eq!((packet.mark, packet.tos()), (7, 0x10));
        let listed = run(&mut nf, "ipchains -L output -v -n").unwrap();
        let lines: Vec<&str> = listed.lines().collect();
        assert!(lines[0].starts_with("Chain output (policy ACCEPT: 1 packets, "), "{listed}");
        assert_eq!(
            lines[1],
            " pkts bytes target     prot opt    tosa tosx  ifname     mark       outsize  source                destination           ports"
        );
        let line = "    1   100 -          all  ------ 0xFF 0x00  *          0x2                   0.0.0.0/0            10.0.0.2              n/a";
        assert_eq!(lines[2], line);
        // Two lines that somebody's ipchains has printed.
        for line in [
            "ipchains -A input -i lo+ -j ACCEPT",
            "ipchains -A input -p udp -l -i eth+ -s 0/0 67 -d 0/0 68 -j ACCEPT",
        ] {
            run(&mut nf, line).unwrap();
        }
        let listed = run(&mut nf, "ipchains -L input -v -n").unwrap();
        for line in [
            "ACCEPT     all  ------ 0xFF 0x00  lo+                            0.0.0.0/0            0.0.0.0/0             n/a",
            "ACCEPT     udp  ----l- 0xFF 0x00  eth+                           0.0.0.0/0            0.0.0.0/0             67 ->   68",
        ] {
            assert!(listed.contains(line), "{listed}");
        }
    }

    #[test]
    fn user_chains_policies_and_refusals() {
        let mut nf = made(&[
            "ipchains -N voice",
            "ipchains -A voice -p udp -d 0/0 2000:3000 -j ACCEPT",
            "ipchains -A forward -s 10.0.0.0/8 -j voice",
            "ipchains -P forward DENY",
        ]);
        let mut other = udp("192.168.0.1", "10.0.0.2", 100);
        assert_eq!(through(&mut nf, Hook::Forward, &mut other), Fate::Drop);
        let mut inside = udp("10.0.0.1", "10.0.0.2", 100);
        assert_eq!(through(&mut nf, Hook::Forward, &mut inside), Fate::Accept);
        for (line, said) in [
            ("ipchains -X voice", "Device or resource busy"),
            ("ipchains -N voice", "Chain already exists"),
            ("ipchains -A nothere -j DENY", "No target by that name"),
            ("ipchains -A input -j nothere", "No target by that name"),
            ("ipchains -A input -j output", "No target by that name"),
            ("ipchains -F nothere", "No chain by that name"),
            ("ipchains -D input -j DENY", "bad rule (does a matching rule exist in that chain?)"),
            ("ipchains -D voice 2", "No chain by that name"),
            ("ipchains -I voice 4 -j DENY", "bad rule (does a matching rule exist in that chain?)"),
        ] {
            let before = nf.clone();
            assert_eq!(run(&mut nf, line).unwrap_err(), format!("ipchains: {said}\n"), "{line}");
            assert_eq!(nf, before, "{line}");
        }
        // Marks are not looked at when a rule is taken away; a chain that nothing jumps to and that is empty can go.
        run(&mut nf, "ipchains -D forward -s 10.0.0.0/8 -m 3 -j voice").unwrap();
        run(&mut nf, "ipchains -F voice").unwrap();
        run(&mut nf, "ipchains -X").unwrap();
        assert_eq!(nf.ipchains().chains().len(), 3);
        assert_eq!(
            run(&mut nf, "ipchains -A input -v -p tcp -s ! 1.2.3.4 -y -j REJECT").unwrap(),
            "REJECT  tcp opt    -y---- tos 0xFF 0x00  via *   !1.2.3.4 -> 0.0.0.0/0    * ->   *\n"
        );
    }

    #[test]
    fn chains_that_jump_in_a_ring_block_the_packet() {
        let mut nf = made(&[
            "ipchains -N a",
            "ipchains -N b",
            "ipchains -A a -j b",
            "ipchains -A b -j a",
            "ipchains -A input -j a",
        ]);
        let mut packet = udp("10.0.0.1", "10.0.0.2", 100);
        assert_eq!(through(&mut nf, Hook::Prerouting, &mut packet), Fate::Drop);
    }
}
