//! Words to a command, as `do_command4` and the extensions' option tables read them.

use super::rule::{
    AddrMatch, Iface, Match, PortKind, PortMatch, Ports, Rule, Table, Target, TcpMatch, Verdict,
};
use super::{Action, Command, Failure, Listing, version};
use crate::token::Word;
use penstock_model::{Handle, Kernel};

mod matches;
mod targets;

pub(super) use matches::{ICMP_NAMES, TCP_FLAGS, TOS_NAMES};
pub(super) use targets::no_target;

/// Reads the words of a line, `iptables` first.
///
/// # Errors
/// What iptables says of the line; nothing has happened then.
pub fn parse(words: &[Word], kernel: Kernel) -> Result<Command, Failure> {
    let p = Parser {
        words,
        at: 1,
        kernel,
        table: Table::Filter,
        verb: None,
        rule: Rule::default(),
        listing: Listing::default(),
        zero: None,
        loaded: Vec::new(),
        target: None,
        given: Vec::new(),
        addresses: Vec::new(),
        goto: false,
        invert: false,
        said: None,
    };
    p.run()
}

/// A command letter with its chain and number.
struct Verb {
    letter: char,
    chain: Option<String>,
    number: Option<u32>,
    other: Option<String>,
    word: usize,
}

/// An extension named by `-m`, or by `-p` of itself, while its options are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loaded {
    Tcp,
    Udp,
    Icmp,
    Mark,
    Multiport,
    Dscp,
    Tos,
    Length,
    Ttl,
    Limit,
    Comment,
}

/// `-j`: its word's place, the name, and what each option of it that was seen makes of it.
type Named = (usize, String, Vec<(String, Target)>);

struct Parser<'a> {
    words: &'a [Word],
    at: usize,
    kernel: Kernel,
    table: Table,
    verb: Option<Verb>,
    rule: Rule,
    listing: Listing,
    zero: Option<Option<String>>,
    /// Extension, its place in the rule's matches, its options that were seen.
    loaded: Vec<(Loaded, usize, Vec<&'static str>)>,
    /// The target named, not yet whole.
    target: Option<Named>,
    /// Letters of the options given that are not legal with every command, and where each stands.
    given: Vec<(char, usize)>,
    /// `-s` and `-d`, which are looked at last.
    addresses: Vec<(char, usize, String, bool)>,
    goto: bool,
    invert: bool,
    said: Option<String>,
}

type Parsed<T = ()> = Result<T, Failure>;

/// Services by name, where `/etc/services` is asked: those a rule is likely to name.
const SERVICES: &[(&str, u16)] = &[
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("http", 80),
    ("www", 80),
    ("pop3", 110),
    ("sunrpc", 111),
    ("ntp", 123),
    ("imap2", 143),
    ("imap", 143),
    ("snmp", 161),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("submission", 587),
    ("imaps", 993),
    ("pop3s", 995),
    ("openvpn", 1194),
    ("sip", 5060),
];

/// The name of a port, where it has one.
pub(super) fn service(port: u16) -> Option<&'static str> {
    SERVICES.iter().find(|(_, p)| *p == port).map(|(name, _)| *name)
}

/// Protocols by name (`/etc/protocols`, `xtables_chain_protos`).
pub(super) const PROTOCOLS: &[(&str, u8)] = &[
    ("tcp", 6),
    ("sctp", 132),
    ("udp", 17),
    ("udplite", 136),
    ("icmp", 1),
    ("icmpv6", 58),
    ("ipv6-icmp", 58),
    ("esp", 50),
    ("ah", 51),
    ("gre", 47),
    ("ipip", 4),
    ("ipencap", 4),
    ("igmp", 2),
    ("ospf", 89),
    ("vrrp", 112),
];

/// The long options of the program itself.
const LONG: &[(&str, char)] = &[
    ("append", 'A'),
    ("delete", 'D'),
    ("check", 'C'),
    ("insert", 'I'),
    ("replace", 'R'),
    ("list", 'L'),
    ("list-rules", 'S'),
    ("flush", 'F'),
    ("zero", 'Z'),
    ("new-chain", 'N'),
    ("delete-chain", 'X'),
    ("rename-chain", 'E'),
    ("policy", 'P'),
    ("source", 's'),
    ("src", 's'),
    ("destination", 'd'),
    ("dst", 'd'),
    ("protocol", 'p'),
    ("in-interface", 'i'),
    ("out-interface", 'o'),
    ("jump", 'j'),
    ("goto", 'g'),
    ("table", 't'),
    ("match", 'm'),
    ("numeric", 'n'),
    ("verbose", 'v'),
    ("exact", 'x'),
    ("fragments", 'f'),
    ("version", 'V'),
    ("help", 'h'),
    ("line-numbers", '0'),
    ("wait", 'w'),
];

impl Parser<'_> {
    fn fail<T>(&self, word: usize, message: impl AsRef<str>, help: &str) -> Parsed<T> {
        Err(Failure::parameter(self.kernel, word, message, help))
    }
    fn old(&self) -> bool {
        self.kernel == Kernel::V2_6_35
    }
    /// The value of the option just read.
    fn value(&mut self, option: &str) -> Parsed<String> {
        match self.words.get(self.at) {
            Some(word) => {
                self.at += 1;
                Ok(word.text.clone())
            }
            None if self.old() => {
                self.fail(self.at - 1, format!("Unknown arg `{option}'"), "it needs a value")
            }
            None => self.fail(
                self.at - 1,
                format!("option \"{option}\" requires an argument"),
                "it needs a value",
            ),
        }
    }
    /// The value of an option that may be inverted between itself and its value (`-s ! 10.0.0.0/8`, deprecated).
    fn invertible(&mut self, option: &str) -> Parsed<(String, bool)> {
        let mut invert = std::mem::take(&mut self.invert);
        let mut value = self.value(option)?;
        if value == "!" && self.old() {
            if invert {
                return self.fail(self.at - 1, "Multiple `!' flags not allowed", "take one off");
            }
            invert = true;
            value = self.value(option)?;
        }
        Ok((value, invert))
    }
    /// A following word that is no option.
    fn optional(&mut self) -> Option<String> {
        let word = self.words.get(self.at)?;
        if word.text.starts_with('-') && word.text.len() > 1 || word.text == "!" {
            return None;
        }
        self.at += 1;
        Some(word.text.clone())
    }

    fn run(mut self) -> Parsed<Command> {
        while self.at < self.words.len() {
            self.step()?;
            if let Some(text) = self.said.take() {
                return Ok(Command { table: self.table, action: Action::Say(text) });
            }
        }
        self.finish()
    }

    fn step(&mut self) -> Parsed {
        let here = self.at;
        let word = self.words[here].text.clone();
        self.at += 1;
        if word == "!" {
            if self.invert {
                return self.fail(here, "multiple consecutive ! not allowed", "take one off");
            }
            self.invert = true;
            return Ok(());
        }
        if let Some(short) = word.strip_prefix('-').filter(|s| !s.is_empty() && !s.starts_with('-')) {
            return self.short_options(here, short);
        }
        if let Some(long) = word.strip_prefix("--").filter(|s| !s.is_empty()) {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (long.to_owned(), None),
            };
            return self.long_option(here, &name, attached);
        }
        if self.old() {
            return self.fail(here, format!("Bad argument `{word}'"), "");
        }
        let mut f = Failure::parameter(self.kernel, here, "", "an option begins with - or --");
        let hint = f.stderr.lines().nth(1).unwrap_or("").to_owned();
        f.stderr = format!("Bad argument `{word}'\n{hint}\n");
        Err(f)
    }

    fn short_options(&mut self, here: usize, letters: &str) -> Parsed {
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let takes = "ADIRNXEPCjgmpsdiotc".contains(letter) && letter != 'X';
            if takes && !rest.is_empty() {
                // `-peth0`: the value hangs on the letter.
                return self.with_attached(here, letter, rest.to_owned());
            }
            self.short(here, letter, None)?;
        }
        Ok(())
    }
    fn with_attached(&mut self, here: usize, letter: char, value: String) -> Parsed {
        self.short(here, letter, Some(value))
    }

    fn long_option(&mut self, here: usize, name: &str, attached: Option<String>) -> Parsed {
        let name = &self.whole_name(name);
        if self.extension_option(here, name, attached.clone())? {
            return Ok(());
        }
        match LONG.iter().find(|(long, _)| *long == name) {
            Some(&(_, letter)) => self.short(here, letter, attached),
            None => self.unknown(here, name),
        }
    }

    fn unknown<T>(&self, here: usize, name: &str) -> Parsed<T> {
        let dashes = if name.chars().count() == 1 { "-" } else { "--" };
        let help = match name {
            "dport" | "sport" | "destination-port" | "source-port" => "ports belong to -p tcp or -p udp",
            "dports" | "sports" | "ports" => "lists of ports belong to -m multiport",
            "set-mark" | "set-xmark" => "it belongs to -j MARK",
            "mark" => "it belongs to -m mark",
            _ => "no match or target named before it has this option",
        };
        if self.old() {
            self.fail(here, format!("Unknown arg `{dashes}{name}'"), help)
        } else {
            self.fail(here, format!("unknown option \"{dashes}{name}\""), help)
        }
    }

    fn verb(&mut self, here: usize, letter: char) -> Parsed<&mut Verb> {
        if let Some(old) = &self.verb {
            let message = format!("Cannot use -{letter} with -{}\n", old.letter);
            return self.fail(here, message, "one command at a time");
        }
        let verb = Verb { letter, chain: None, number: None, other: None, word: here };
        Ok(self.verb.insert(verb))
    }

    fn chain_name(&self, here: usize, name: &str) -> Parsed {
        let help = "a chain's name has at most 28 characters and does not begin with - or !";
        if name.len() >= 29 {
            let message = if self.old() {
                format!("chain name `{name}' too long (must be under 30 chars)")
            } else {
                format!("chain name `{name}' too long (must be under 29 chars)")
            };
            return self.fail(here, message, help);
        }
        if name.starts_with('-') || name.starts_with('!') {
            if self.old() {
                return self.fail(here, "chain name not allowed to start with `-' or `!'\n", help);
            }
            let first = &name[..1];
            return self.fail(here, format!("chain name not allowed to start with `{first}'\n"), help);
        }
        if targets::is_target(name, self.old()) {
            return self.fail(here, "chain name may not clash with target name\n", help);
        }
        let bad = name.chars().any(char::is_whitespace);
        if bad || name.is_empty() {
            self.fail(here, format!("Invalid chain name `{name}'"), help)
        } else {
            Ok(())
        }
    }

    fn short(&mut self, here: usize, letter: char, attached: Option<String>) -> Parsed {
        let option = self.words[here].text.clone();
        macro_rules! value {
            () => {
                match attached {
                    Some(value) => value,
                    None => self.value(&option)?,
                }
            };
        }
        if self.invert && !"psdiof".contains(letter) {
            let message = match letter {
                'm' if !self.old() => "unexpected ! flag before --match".to_owned(),
                't' if !self.old() => "unexpected ! flag before --table".to_owned(),
                'j' | 'g' | 'n' | 'v' | 'x' | '0' | 'c' if !self.old() => {
                    format!("cannot have ! before -{}", if letter == 'g' { 'j' } else { letter })
                }
                '0' => "unexpected ! flag before --line-numbers".to_owned(),
                _ if !self.old() => "unexpected '!' flag".to_owned(),
                _ => format!("unexpected ! flag before --{letter}"),
            };
            return self.fail(here, message, "take it off");
        }
        match letter {
            'A' | 'C' | 'N' => {
                let chain = value!();
                if letter == 'N' {
                    self.chain_name(here, &chain)?;
                }
                self.verb(here, letter)?.chain = Some(chain);
            }
            'D' | 'R' | 'I' => {
                let chain = value!();
                let number = match self.words.get(self.at).filter(|w| {
                    letter != 'I' && w.text.starts_with(|c: char| c.is_ascii_digit())
                        || letter == 'I' && !w.text.starts_with('-') && w.text != "!"
                }) {
                    Some(word) => {
                        self.at += 1;
                        Some(self.rule_number(&word.text)?)
                    }
                    None if letter == 'R' => {
                        return self.fail(here, "-R requires a rule number", "-R chain number rule");
                    }
                    None => None,
                };
                let verb = self.verb(here, letter)?;
                (verb.chain, verb.number) = (Some(chain), number);
            }
            'L' | 'S' | 'F' | 'Z' | 'X' => {
                let chain = attached.or_else(|| self.optional());
                let number = match &chain {
                    Some(_) if matches!(letter, 'L' | 'S' | 'Z') => match self.optional() {
                        Some(text) => Some(self.rule_number(&text)?),
                        None => None,
                    },
                    _ => None,
                };
                let listing = self.verb.as_ref().is_some_and(|v| v.letter == 'L');
                if letter == 'Z' && listing {
                    self.zero = Some(chain);
                } else if letter == 'L' && self.verb.as_ref().is_some_and(|v| v.letter == 'Z') {
                    let zeroed = self.verb.take().and_then(|v| v.chain);
                    self.zero = Some(zeroed);
                    let verb = self.verb(here, letter)?;
                    (verb.chain, verb.number) = (chain, number);
                } else {
                    let verb = self.verb(here, letter)?;
                    (verb.chain, verb.number) = (chain, number);
                }
            }
            'E' => {
                let chain = value!();
                let Some(other) = self.optional() else {
                    return self.fail(here, "-E requires old-chain-name and new-chain-name", "");
                };
                self.chain_name(self.at - 1, &other)?;
                let verb = self.verb(here, letter)?;
                (verb.chain, verb.other) = (Some(chain), Some(other));
            }
            'P' => {
                let chain = value!();
                let Some(policy) = self.optional() else {
                    return self.fail(here, "-P requires a chain and a policy", "-P chain ACCEPT|DROP");
                };
                let verb = self.verb(here, letter)?;
                (verb.chain, verb.other) = (Some(chain), Some(policy));
            }
            't' => {
                let name = value!();
                self.table = self.table_named(self.at - 1, &name)?;
            }
            'p' => self.protocol(here, attached)?,
            's' | 'd' => {
                let invert = std::mem::take(&mut self.invert);
                let (text, invert) = match attached {
                    Some(text) => (text, invert),
                    None => {
                        self.invert = invert;
                        self.invertible(&option)?
                    }
                };
                self.give(here, letter)?;
                self.addresses.push((letter, self.at - 1, text, invert));
            }
            'i' | 'o' => {
                let invert = std::mem::take(&mut self.invert);
                let (text, invert) = match attached {
                    Some(text) => (text, invert),
                    None => {
                        self.invert = invert;
                        self.invertible(&option)?
                    }
                };
                let iface = self.iface(self.at - 1, &text, invert)?;
                self.give(here, letter)?;
                *(if letter == 'i' { &mut self.rule.input } else { &mut self.rule.output }) = iface;
            }
            'f' => {
                self.give(here, 'f')?;
                self.rule.fragment = Some(std::mem::take(&mut self.invert));
            }
            'm' => {
                let name = value!();
                self.load(self.at - 1, &name)?;
            }
            'j' | 'g' => {
                let name = value!();
                self.give(here, 'j')?;
                self.goto = letter == 'g';
                self.target = Some((self.at - 1, name, Vec::new()));
            }
            'n' => {
                self.give(here, 'n')?;
                self.listing.numeric = true;
            }
            'v' => self.listing.verbose = true,
            'x' => {
                self.give(here, 'x')?;
                self.listing.exact = true;
            }
            '0' => {
                self.give(here, '0')?;
                self.listing.line_numbers = true;
            }
            'w' | 'W' => {
                let digits = |w: &&Word| w.text.bytes().all(|b| b.is_ascii_digit());
                if attached.is_none() && self.words.get(self.at).filter(digits).is_some() {
                    self.at += 1;
                }
            }
            'c' => {
                self.give(here, 'c')?;
                for part in ["packet", "byte"] {
                    let text = self.value(&option)?;
                    if text.parse::<u64>().is_err() {
                        return self.fail(self.at - 1, format!("-c {part} counter not numeric"), "");
                    }
                }
            }
            'h' => self.said = Some(help_text(self.kernel)),
            'V' => self.said = Some(format!("{}\n", version(self.kernel))),
            '4' => {}
            _ => return self.unknown(here, &letter.to_string()),
        }
        Ok(())
    }

    fn rule_number(&self, text: &str) -> Parsed<u32> {
        match text.parse::<u32>() {
            Ok(n) if n >= 1 => Ok(n),
            _ => self.fail(self.at - 1, format!("Invalid rule number `{text}'"), "rules are numbered from 1"),
        }
    }

    fn table_named(&self, here: usize, name: &str) -> Parsed<Table> {
        match name {
            "mangle" => Ok(Table::Mangle),
            "filter" => Ok(Table::Filter),
            "nat" | "raw" | "security" => {
                let mut f = no_such_table(self.kernel, name, here);
                f.help = format!("this machine knows the tables mangle and filter; {name} is not modelled");
                Err(f)
            }
            _ => Err(no_such_table(self.kernel, name, here)),
        }
    }

    fn protocol(&mut self, here: usize, attached: Option<String>) -> Parsed {
        let invert = std::mem::take(&mut self.invert);
        let (text, invert) = match attached {
            Some(text) => (text, invert),
            None => {
                self.invert = invert;
                self.invertible("-p")?
            }
        };
        let lower = text.to_ascii_lowercase();
        let number = match lower.as_str() {
            "all" => 0,
            _ => match PROTOCOLS.iter().find(|(name, _)| *name == lower) {
                Some(&(_, number)) => number,
                None => match parse_u32(&text).filter(|&n| n <= 255) {
                    Some(n) => n as u8,
                    None => {
                        let message = match self.old() {
                            true => format!("unknown protocol `{lower}' specified"),
                            false => format!("unknown protocol \"{lower}\" specified"),
                        };
                        return self.fail(self.at - 1, message, "tcp, udp, icmp, all, or a number");
                    }
                },
            },
        };
        if number == 0 && invert {
            return self.fail(here, "rule would never match protocol", "");
        }
        self.give(here, 'p')?;
        if number != 0 {
            self.rule.protocol = Some((number, invert));
        }
        Ok(())
    }

    fn address(&self, here: usize, text: &str, invert: bool) -> Parsed<Option<AddrMatch>> {
        let (addr, mask) = match text.split_once('/') {
            Some((addr, mask)) => (addr, Some(mask)),
            None => (text, None),
        };
        if addr.contains(',') {
            return self.fail(
                here,
                "lists of addresses are not understood here",
                "write one rule for each address",
            );
        }
        let Some(value) = dotted(addr, mask.is_some()) else {
            let message = format!("host/network `{addr}' not found");
            return self.fail(here, message, "write an IPv4 address, e.g. 10.0.0.0/24");
        };
        let mask = match mask {
            None => u32::MAX,
            Some(text) => match text.parse::<u32>() {
                Ok(n) if n <= 32 => prefix_mask(n),
                _ => match dotted(text, false) {
                    Some(mask) => mask,
                    None => {
                        let message = format!("invalid mask `{text}' specified");
                        return self.fail(here, message, "0 to 32, or 255.255.255.0");
                    }
                },
            },
        };
        Ok((mask != 0 || invert).then_some(AddrMatch { addr: value & mask, mask, invert }))
    }

    fn iface(&self, here: usize, text: &str, invert: bool) -> Parsed<Option<Iface>> {
        if text.is_empty() {
            return self.fail(here, "Empty interface is likely to be undesired", "");
        }
        if text.len() + 1 > 16 {
            let message = format!("interface name `{text}' must be shorter than IFNAMSIZ (15)");
            return self.fail(here, message, "");
        }
        let (name, wildcard) = match text.strip_suffix('+') {
            Some(name) => (name, true),
            None => (text, false),
        };
        if self.old() && wildcard && name.is_empty() && !invert {
            return Ok(None);
        }
        Ok(Some(Iface { name: name.to_owned(), wildcard, invert }))
    }

    fn finish(mut self) -> Parsed<Command> {
        if self.invert {
            return self.fail(self.words.len() - 1, "nothing appropriate following !", "");
        }
        let Some(verb) = self.verb.take() else {
            return self.fail(0, "no command specified", "-A, -I, -D, -N, -F, -L, -S, …");
        };
        self.legal(&verb)?;
        for (letter, at, text, invert) in std::mem::take(&mut self.addresses) {
            // 0.0.0.0/0 is no condition at all.
            let addr = self.address(at, &text, invert)?;
            *(if letter == 's' { &mut self.rule.src } else { &mut self.rule.dst }) = addr;
        }
        let chain = verb.chain.clone();
        if matches!(verb.letter, 'A' | 'I' | 'D' | 'R' | 'C') {
            if verb.letter == 'D' && verb.number.is_some() {
                let action = Action::DeleteNumber(chain.unwrap_or_default(), verb.number.unwrap_or(1));
                return Ok(Command { table: self.table, action });
            }
            let rule = self.finish_rule(&verb)?;
            let chain = chain.unwrap_or_default();
            let action = match verb.letter {
                'A' => Action::Append(chain, rule),
                'I' => Action::Insert(chain, verb.number.unwrap_or(1), rule),
                'R' => Action::Replace(chain, verb.number.unwrap_or(1), rule),
                'C' => Action::Check(chain, rule),
                _ => Action::Delete(chain, rule),
            };
            return Ok(Command { table: self.table, action });
        }
        self.listing.chain = chain.clone();
        self.listing.number = verb.number;
        self.listing.zero = self.zero.is_some();
        let action = match (verb.letter, chain) {
            ('N', Some(chain)) => Action::NewChain(chain),
            ('E', Some(chain)) => Action::Rename(chain, verb.other.unwrap_or_default()),
            ('P', Some(chain)) => Action::Policy(chain, verb.other.unwrap_or_default()),
            ('X', chain) => Action::DeleteChain(chain),
            ('F', chain) => Action::Flush(chain),
            ('Z', chain) => Action::Zero(chain, verb.number),
            ('S', _) => Action::Save(self.listing),
            _ => Action::List(self.listing),
        };
        Ok(Command { table: self.table, action })
    }

    /// Notes an option that may be given once (`set_option`).
    fn give(&mut self, here: usize, letter: char) -> Parsed {
        let once = !self.old() || "psdioj".contains(letter);
        if once && self.given.iter().any(|g| g.0 == letter) {
            return self.fail(here, format!("multiple -{letter} flags not allowed"), "take one off");
        }
        self.given.push((letter, here));
        Ok(())
    }

    /// `generic_opt_check`: which options go with which command.
    fn legal(&self, verb: &Verb) -> Parsed {
        if self.old() {
            let rule = self.given.iter().any(|g| "psdiofj".contains(g.0)) || self.rule != Rule::default();
            if rule && !"AIDRC".contains(verb.letter) {
                let message = "Illegal option `-j' with this command\n";
                return self.fail(verb.word, message, "a rule belongs to -A, -I, -D, -R or -C");
            }
            return Ok(());
        }
        let (illegal, help) = match verb.letter {
            'D' if verb.number.is_some() => ("nsdpjxio0cf", "a rule's number says it all"),
            'A' | 'I' | 'R' => ("nx0", "it belongs to -L"),
            'D' | 'C' => ("nx0c", "it belongs to -L"),
            'L' => ("sdpjiocf", "a rule belongs to -A, -I, -D, -R or -C"),
            'P' => ("nsdpjxio0f", "a rule belongs to -A, -I, -D, -R or -C"),
            _ => ("nsdpjxio0cf", "a rule belongs to -A, -I, -D, -R or -C; -n, -x and --line-numbers to -L"),
        };
        for letter in illegal.chars() {
            if let Some(&(_, at)) = self.given.iter().find(|g| g.0 == letter) {
                return self.fail(at, format!("Illegal option `-{letter}' with this command\n"), help);
            }
        }
        Ok(())
    }

    fn finish_rule(&mut self, verb: &Verb) -> Parsed<Rule> {
        let chain = verb.chain.as_deref().unwrap_or("");
        self.finish_matches()?;
        self.finish_target()?;
        let with = |what: &str| format!("Can't use -{what} with {chain}\n");
        if self.rule.output.is_some() && matches!(chain, "PREROUTING" | "INPUT") {
            return self.fail(verb.word, with("o"), "the way out is not known yet in this chain");
        }
        if self.rule.input.is_some() && matches!(chain, "POSTROUTING" | "OUTPUT") {
            return self.fail(verb.word, with("i"), "the way in is not known any more in this chain");
        }
        Ok(std::mem::take(&mut self.rule))
    }
}

fn no_such_table(kernel: Kernel, name: &str, word: usize) -> Failure {
    let stderr = format!(
        "{}: can't initialize iptables table `{name}': Table does not exist (do you need to insmod?)\nPerhaps iptables or your kernel needs to be upgraded.\n",
        version(kernel)
    );
    Failure { stderr, exit: 3, word, help: "tables: mangle, filter".to_owned() }
}

fn help_text(kernel: Kernel) -> String {
    format!(
        "{}\n\nUsage: iptables -[ACD] chain rule-specification [options]\n       iptables -I chain [rulenum] rule-specification [options]\n       iptables -R chain rulenum rule-specification [options]\n       iptables -D chain rulenum [options]\n       iptables -[LS] [chain [rulenum]] [options]\n       iptables -[FZ] [chain] [options]\n       iptables -[NX] chain\n       iptables -E old-chain-name new-chain-name\n       iptables -P chain target [options]\n       iptables -h (print this help information)\n",
        version(kernel)
    )
}

/// A number as `strtoul` with base 0: decimal, `0x` hex, leading 0 octal.
pub(super) fn parse_u32(text: &str) -> Option<u32> {
    if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return if hex.starts_with('+') { None } else { u32::from_str_radix(hex, 16).ok() };
    }
    if text.starts_with('+') {
        return None;
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u32::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// A dotted quad; with a mask behind, missing last parts are 0 (`10.3/16`).
fn dotted(text: &str, short: bool) -> Option<u32> {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 4 || (parts.len() < 4 && !short) {
        return None;
    }
    let mut value = 0u32;
    for i in 0..4 {
        let part = match parts.get(i) {
            Some(p) if !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()) => p.parse::<u8>().ok()?,
            Some(_) => return None,
            None => 0,
        };
        value = value << 8 | u32::from(part);
    }
    Some(value)
}

fn prefix_mask(len: u32) -> u32 {
    if len == 0 { 0 } else { u32::MAX << (32 - len) }
}

#[cfg(test)]
mod tests;
