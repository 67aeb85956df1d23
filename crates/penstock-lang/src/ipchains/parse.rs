//! Words to a command, as ipchains' `main` reads them.

use super::value::{
    address, check_tos, fault, help, hexbyte, mark, number, parse_port, policy, ports, protocol, rule_number,
    target, try_help,
};
use super::{Action, Command, Failure, ICMP, Listing, MAX_LABEL, Range, Rule, VERSION};
use crate::token::Word;

/// Long options: name, letter, whether an argument must follow.
const LONG: [(&str, char, bool); 39] = [
    ("append", 'A', true),
    ("delete", 'D', true),
    ("insert", 'I', true),
    ("replace", 'R', true),
    ("list", 'L', false),
    ("flush", 'F', false),
    ("zero", 'Z', false),
    ("check", 'C', true),
    ("new-chain", 'N', true),
    ("delete-chain", 'X', false),
    ("policy", 'P', true),
    ("masquerading", 'M', false),
    ("set", 'S', true),
    ("bidirectional", 'b', false),
    ("source", 's', true),
    ("destination", 'd', true),
    ("src", 's', true),
    ("dst", 'd', true),
    ("source-port", '1', true),
    ("destination-port", '2', true),
    ("icmp-type", '1', true),
    ("sport", '1', true),
    ("dport", '2', true),
    ("protocol", 'p', true),
    ("interface", 'i', true),
    ("jump", 'j', true),
    ("TOS", 't', true),
    ("mark", 'm', true),
    ("numeric", 'n', false),
    ("log", 'l', false),
    ("output", 'o', false),
    ("verbose", 'v', false),
    ("exact", 'x', false),
    ("fragments", 'f', false),
    ("syn", 'y', false),
    ("version", 'V', false),
    ("help", 'h', false),
    ("line-numbers", '3', false),
    ("no-warnings", 'W', false),
];
/// Letters that an argument must follow.
const WITH_ARGUMENT: &str = "ACDRINPSpsdjimt";
/// Options, in the order in which they are checked; the ports of `-s` and `-d` are `1` and `2`.
const OPTIONS: &str = "nsdpjybvlxtifm12o3";

/// How a letter is written in messages.
fn shown(letter: char) -> char {
    match letter {
        '1' => 's',
        '2' => 'd',
        other => other,
    }
}

struct Parser<'a> {
    words: Vec<&'a str>,
    at: usize,
    invert: bool,
    verb: Option<char>,
    chain: Option<String>,
    number: u32,
    policy: String,
    zero: bool,
    given: Vec<char>,
    not: Vec<char>,
    rule: Rule,
    ports: [Option<String>; 2],
    addresses: [Option<String>; 2],
    redirect: Option<String>,
    quiet: bool,
}

/// Reads the words of a line, the program's name first.
///
/// # Errors
/// What the program says of the line; nothing has happened then.
pub fn parse(words: &[Word]) -> Result<Command, Failure> {
    let mut p = Parser {
        words: words.iter().skip(1).map(|w| w.text.as_str()).collect(),
        at: 0,
        invert: false,
        verb: None,
        chain: None,
        number: 0,
        policy: String::new(),
        zero: false,
        given: Vec::new(),
        not: Vec::new(),
        rule: Rule::default(),
        ports: [None, None],
        addresses: [None, None],
        redirect: None,
        quiet: false,
    };
    while p.at < p.words.len() {
        if let Some(said) = p.word()? {
            return Ok(Command { action: Action::Say(said), verbose: false, warnings: String::new() });
        }
    }
    p.finish()
}

impl Parser<'_> {
    /// The next word that is neither an option nor `!`.
    fn plain(&mut self) -> Option<String> {
        let word = self.words.get(self.at).filter(|w| !w.starts_with('-') && !w.starts_with('!'))?;
        self.at += 1;
        Some((*word).to_owned())
    }

    fn word(&mut self) -> Result<Option<String>, Failure> {
        let word = self.words[self.at];
        self.at += 1;
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let mut found: Vec<&(&str, char, bool)> = LONG.iter().filter(|o| o.0 == name).collect();
            if found.is_empty() {
                found = LONG.iter().filter(|o| o.0.starts_with(name) && !name.is_empty()).collect();
            }
            let same = found.windows(2).all(|w| w[0].1 == w[1].1);
            let Some((_, letter, takes)) = found.first().copied().filter(|_| same).copied() else {
                let stderr = format!(
                    "ipchains: unrecognized option `{word}'\nTry `ipchains -h' or 'ipchains --help' for more information.\n"
                );
                return Err(Failure { stderr, exit: 2, help: String::new() });
            };
            let value = if takes && value.is_none() { self.argument(letter)? } else { value };
            let said = self.option(letter, value)?;
            self.invert = false;
            return Ok(said);
        }
        let Some(cluster) = word.strip_prefix('-').filter(|c| !c.is_empty()) else {
            if word == "!" {
                if self.invert {
                    return fault("multiple consecutive ! not allowed\n");
                }
                self.invert = true;
                return Ok(None);
            }
            return Err(try_help());
        };
        let mut letters = cluster.chars();
        while let Some(letter) = letters.next() {
            let rest = letters.as_str();
            let attached = || (!rest.is_empty()).then(|| rest.to_owned());
            let said = if WITH_ARGUMENT.contains(letter) {
                let value = match attached() {
                    Some(value) => Some(value),
                    None => self.argument(letter)?,
                };
                letters = "".chars();
                self.option(letter, value)?
            } else if "LFZXho".contains(letter) && attached().is_some() {
                let value = attached();
                letters = "".chars();
                self.option(letter, value)?
            } else {
                self.option(letter, None)?
            };
            self.invert = false;
            if said.is_some() {
                return Ok(said);
            }
        }
        Ok(None)
    }

    /// The word that must follow, whatever it is.
    fn argument(&mut self, letter: char) -> Result<Option<String>, Failure> {
        let Some(word) = self.words.get(self.at) else {
            let stderr = format!(
                "ipchains: option requires an argument -- {letter}\nTry `ipchains -h' or 'ipchains --help' for more information.\n"
            );
            return Err(Failure { stderr, exit: 2, help: String::new() });
        };
        self.at += 1;
        Ok(Some((*word).to_owned()))
    }

    /// `-p ! tcp`: where the argument is `!`, the one behind it counts.
    fn inverse(&mut self, value: Option<String>) -> Result<String, Failure> {
        let value = value.unwrap_or_default();
        if value != "!" {
            return Ok(value);
        }
        if self.invert {
            return fault("Multiple `!' flags not allowed");
        }
        self.invert = true;
        let next = self.words.get(self.at).map(|w| (*w).to_owned());
        self.at += 1;
        next.ok_or_else(try_help)
    }

    fn verb(&mut self, letter: char) -> Result<(), Failure> {
        if self.invert {
            return fault("unexpected ! flag");
        }
        match self.verb {
            None => self.verb = Some(letter),
            Some('L') if letter == 'Z' => self.zero = true,
            Some('Z') if letter == 'L' => (self.verb, self.zero) = (Some('L'), true),
            Some(other) => return fault(format!("Can't use -{letter} with -{other}\n")),
        }
        Ok(())
    }

    fn set(&mut self, letter: char) -> Result<(), Failure> {
        if self.given.contains(&letter) {
            return fault(format!("multiple -{} flags not allowed\n", shown(letter)));
        }
        self.given.push(letter);
        if self.invert {
            if !"sdpyif12".contains(letter) {
                return fault(format!("cannot have ! before -{}\n", shown(letter)));
            }
            self.not.push(letter);
            self.invert = false;
        }
        Ok(())
    }

    fn option(&mut self, letter: char, value: Option<String>) -> Result<Option<String>, Failure> {
        match letter {
            'A' | 'C' | 'N' => {
                self.verb(letter)?;
                self.chain = value;
            }
            'D' | 'R' | 'I' => {
                self.verb(letter)?;
                self.chain = value;
                match self.plain() {
                    Some(word) => self.number = rule_number(&word)?,
                    None if letter == 'R' => return fault("-R requires a rule number"),
                    None => self.number = u32::from(letter == 'I'),
                }
            }
            'L' | 'F' | 'Z' | 'X' => {
                self.verb(letter)?;
                let chain = value.or_else(|| self.plain());
                self.chain = chain.or(self.chain.take());
                if self.zero && self.chain.is_some() {
                    return fault("-L with -Z does not allow chain to be specified");
                }
            }
            'P' => {
                self.verb(letter)?;
                let chain = value.unwrap_or_default();
                let Some(word) = self.plain() else { return fault("-P requires a chain and a policy") };
                self.policy = policy(&chain, &word)?;
                self.chain = Some(chain);
            }
            'M' | 'S' => {
                return Err(Failure::refused(
                    "masquerading is not supported",
                    "addresses are never translated here",
                ));
            }
            'h' => return Ok(Some(help())),
            'V' => {
                let said = if self.invert { "Not ipchains 2.0" } else { VERSION };
                return Ok(Some(format!("{said}\n")));
            }
            'W' => self.quiet = true,
            'p' => {
                let word = self.inverse(value)?;
                self.set('p')?;
                self.rule.protocol = protocol(&word)?;
                if self.rule.protocol == 0 && self.not.contains(&'p') {
                    return fault("rule would never match protocol");
                }
            }
            's' | 'd' => self.address(letter, value)?,
            '1' | '2' => {
                let word = self.inverse(value)?;
                self.set(letter)?;
                self.ports[usize::from(letter == '2')] = Some(word);
            }
            'j' => {
                self.set('j')?;
                self.rule.target = target(value.unwrap_or_default())?;
                if self.rule.target == "REDIRECT" {
                    self.redirect = self.plain();
                }
            }
            'i' => {
                let word = self.inverse(value)?;
                self.set('i')?;
                if word.len() > 16 {
                    return fault(format!("interface name `{word}' must be shorter than IFNAMSIZ (16)"));
                }
                self.rule.iface_wild = word.is_empty() || word.ends_with('+');
                self.rule.iface = word.strip_suffix('+').unwrap_or(&word).to_owned();
            }
            'm' => {
                self.set('m')?;
                self.rule.mark = mark(&value.unwrap_or_default())?;
            }
            'o' => {
                self.set('o')?;
                let word = value.or_else(|| self.plain());
                self.rule.netlink = Some(match word {
                    None => 0xffff,
                    Some(word) => match number(&word, 0, 0xffff) {
                        Some(n) => n as u16,
                        None => return fault(format!("-o argument must be 0-65535, not `{word}'")),
                    },
                });
            }
            't' => {
                self.set('t')?;
                let Some(xor) = self.plain() else { return fault("-t requires 2 hexbyte arguments") };
                self.rule.tos = (hexbyte(&value.unwrap_or_default())?, hexbyte(&xor)?);
            }
            '3' if self.invert => return fault("cannot have ! before --line-numbers"),
            'l' | 'n' | 'b' | 'v' | 'f' | 'x' | 'y' | '3' => {
                self.set(letter)?;
                self.rule.log |= letter == 'l';
            }
            _ => {
                let stderr = format!(
                    "ipchains: invalid option -- {letter}\nTry `ipchains -h' or 'ipchains --help' for more information.\n"
                );
                return Err(Failure { stderr, exit: 2, help: String::new() });
            }
        }
        Ok(None)
    }

    /// `-s [!] ADDRESS[/MASK] [!] [PORT[:PORT]]`.
    fn address(&mut self, letter: char, value: Option<String>) -> Result<(), Failure> {
        let word = self.inverse(value)?;
        self.set(letter)?;
        let side = usize::from(letter == 'd');
        self.addresses[side] = Some(word);
        let bang = usize::from(self.words.get(self.at) == Some(&"!"));
        let port = self.words.get(self.at + bang).filter(|w| !w.starts_with('-') && !w.starts_with('!'));
        if let Some(port) = port {
            self.ports[side] = Some((*port).to_owned());
            self.at += bang + 1;
            self.invert = bang == 1;
            self.set(if side == 0 { '1' } else { '2' })?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Command, Failure> {
        let Some(verb) = self.verb else { return fault("no command specified") };
        if self.invert {
            return fault("nothing appropriate following !");
        }
        let given = |letter: char| self.given.contains(&letter);
        let not = |letter: char| self.not.contains(&letter);
        let chain = self.chain.clone().unwrap_or_default();
        let rules = matches!(verb, 'A' | 'R' | 'I') || verb == 'D' && self.number == 0;
        let mut rule = self.rule.clone();
        rule.not_protocol = not('p');
        rule.not_iface = not('i');
        rule.syn = given('y').then(|| not('y'));
        rule.fragment = given('f').then(|| not('f'));
        for (side, letter) in [(0, 's'), (1, 'd')] {
            let Some(text) = self.addresses[side].clone().or(rules.then(|| "0.0.0.0/0".to_owned())) else {
                continue;
            };
            let found = address(&text, not(letter))?;
            if side == 0 { rule.src = found } else { rule.dst = found }
        }
        let named = self.icmp(&mut rule, not('1') || not('2'))?;
        if !named {
            for (side, letter) in [(0, '1'), (1, '2')] {
                let range = ports(self.ports[side].as_deref(), rule.protocol, not(letter))?;
                if side == 0 { rule.sports = range } else { rule.dports = range }
            }
        }
        let has_ports = given('1') || given('2');
        let certain = |protocol: u16| rule.protocol == protocol && !rule.not_protocol;
        let whole_fragment = given('f') && !not('f');
        if (rule.protocol == 0 || rule.not_protocol) && has_ports {
            return fault("no ports allowed without specific protocol");
        }
        if given('y') && !certain(6) {
            return fault("-y only allowed with TCP protocol");
        }
        if whole_fragment && has_ports {
            return fault("no ports allowed with -f");
        }
        if whole_fragment && given('y') {
            return fault("-y not allowed with -f");
        }
        match rule.target.as_str() {
            "REDIRECT" if !certain(6) && !certain(17) => {
                return fault("redirecting only allowed with TCP or UDP");
            }
            "MASQ" if matches!(chain.as_str(), "input" | "output") => {
                return fault("masquerading not allowed for input and output chains");
            }
            "REDIRECT" if matches!(chain.as_str(), "output" | "forward") => {
                return fault("redirect not allowed for output and forward chains");
            }
            _ => {}
        }
        self.check_options(verb, rules)?;
        if chain.len() > MAX_LABEL {
            return fault(format!("chain name `{chain}' too long (must be under {MAX_LABEL} chars)"));
        }
        if let Some(port) = &self.redirect {
            rule.redirect = parse_port(port, rule.protocol)?;
        }
        let warnings = check_tos(rule.tos, self.quiet)?;
        let both = |rule: Rule| if given('b') { vec![rule.clone(), rule.reversed()] } else { vec![rule] };
        let all = self.chain.clone();
        let action = match verb {
            'A' => Action::Append(chain, both(rule)),
            'I' => Action::Insert(chain, self.number, both(rule)),
            'D' if self.number == 0 => Action::Delete(chain, both(rule)),
            'D' => Action::DeleteNumber(chain, self.number),
            'R' => Action::Replace(chain, self.number, Box::new(rule)),
            'N' => Action::NewChain(chain),
            'X' => Action::DeleteChain(all),
            'F' => Action::Flush(all),
            'Z' => Action::Zero(all),
            'P' => Action::Policy(chain, self.policy.clone()),
            'L' => Action::List(Listing {
                chain: all,
                numeric: given('n'),
                verbose: given('v'),
                exact: given('x'),
                line_numbers: given('3'),
                zero: self.zero,
            }),
            _ => {
                return Err(Failure::refused(
                    "-C is not supported",
                    "send a packet: the counters of ipchains -L -v show its way",
                ));
            }
        };
        Ok(Command { action, verbose: given('v'), warnings })
    }

    /// A type of ICMP by its name, or the beginning of it; whether it was one.
    fn icmp(&self, rule: &mut Rule, inverted: bool) -> Result<bool, Failure> {
        let Some(name) = self.ports[0].as_deref().filter(|_| rule.protocol == 1) else { return Ok(false) };
        let begins = |full: &str| full.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
        let mut found = ICMP.iter().filter(|i| !name.is_empty() && begins(i.0));
        let Some(kind) = found.next() else { return Ok(false) };
        if let Some(other) = found.next() {
            return fault(format!("Ambiguous ICMP `{name}' : `{}' or `{}'?", kind.0, other.0));
        }
        if self.ports[1].is_some() {
            return fault("Can't use ICMP name and destination port together");
        }
        if inverted {
            return fault("Can't invert named ICMP types");
        }
        rule.sports = Range { from: kind.1, to: kind.1, invert: false };
        rule.dports = Range { from: kind.2, to: kind.3, invert: false };
        Ok(true)
    }

    /// `generic_opt_check`.
    fn check_options(&self, verb: char, rules: bool) -> Result<(), Failure> {
        for letter in OPTIONS.chars().filter(|l| self.given.contains(l)) {
            let legal = match letter {
                'v' => true,
                'n' | 'x' | '3' => verb == 'L',
                'b' => rules && verb != 'R',
                _ => rules,
            };
            if !legal {
                return fault(format!("Illegal option `-{}' with this command\n", shown(letter)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mark;
    use super::*;
    use crate::token;

    fn read(line: &str) -> Result<Command, Failure> {
        parse(&token::words(line).unwrap())
    }
    fn rule(line: &str) -> Rule {
        match read(line).unwrap().action {
            Action::Append(_, mut rules) => rules.remove(0),
            other => panic!("{other:?}"),
        }
    }
    fn message(line: &str) -> String {
        read(line).unwrap_err().stderr.lines().next().unwrap().to_owned()
    }

    #[test]
    fn rules_read() {
        let r = rule("ipchains -A output -d 192.129.1.0/24 -m 2");
        assert_eq!((r.mark, r.dst.addr, r.target.as_str()), (Mark::Set(2), 0xc081_0100, ""));
        assert_eq!(rule("ipchains -A input -m +3").mark, Mark::Add(3));
        assert_eq!(rule("ipchains -A input -m -1").mark, Mark::Add(u32::MAX));
        let r = rule(
            "ipchains -A input -p tcp -s ! 10.0.0.0/255.0.0.0 ! 1024: -d 0/0 www -i eth+ -y -t 0x01 0x10 -j DENY",
        );
        assert!(r.src.invert && r.sports.invert && r.iface_wild && r.syn == Some(false));
        assert_eq!((r.sports.from, r.dports.to, r.tos), (1024, 80, (1, 0x10)));
        let r = rule("ipchains -A input -p icmp --icmp-type host-unr -j REJECT");
        assert_eq!((r.sports.from, r.dports.from), (3, 1));
        match read("ipchains -nvL input").unwrap().action {
            Action::List(l) => assert!(l.numeric && l.verbose && l.chain.as_deref() == Some("input")),
            other => panic!("{other:?}"),
        }
        match read("ipchains -A input -b -p udp -s 1.2.3.4 53 -j ACCEPT").unwrap().action {
            Action::Append(_, rules) => {
                assert_eq!((rules[1].dports.from, rules[1].dst.addr), (53, 0x0102_0304))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_wrong_is_said_as_ipchains_says_it() {
        for (line, said) in [
            ("ipchains", "no command specified"),
            ("ipchains -A input -L", "Can't use -L with -A"),
            ("ipchains -P input DROP", "Invalid policy `DROP' for -P"),
            ("ipchains -P mine DENY", "Can only set policy in built-in chains."),
            ("ipchains -A input --dport 80 -j ACCEPT", "can only specify ports for icmp, tcp or udp"),
            ("ipchains -A input -y -j DENY", "-y only allowed with TCP protocol"),
            ("ipchains -A input -t 0x00 0x10", "TOS manipulation cannot alter bit 0 (RFC1349)"),
            ("ipchains -A input -t 01 0c", "TOS manipulation cannot set multiple TOS bits (RFC1349)"),
            ("ipchains -A input -j MASQ", "masquerading not allowed for input and output chains"),
            (
                "ipchains -A averylongname -j DENY",
                "chain name `averylongname' too long (must be under 8 chars)",
            ),
            ("ipchains -L -j DENY", "Illegal option `-j' with this command"),
            ("ipchains -A input -m x", "Bad value `x' for -m."),
            ("ipchains -D input 0", "Invalid rule number `0'"),
        ] {
            assert_eq!(message(line), format!("ipchains: {said}"), "{line}");
        }
    }
}
