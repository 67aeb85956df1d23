//! Commands, the options that go with each, and the whole once all words are read.

use super::{
    Action, Command, Failure, Family, Head, Listing, Match, Parsed, Parser, Program, Rule, Table, Target,
    Verb, Verdict, matches, option, targets,
};

impl Parser<'_> {
    fn verb(&mut self, here: usize, letter: char) -> Parsed<&mut Verb> {
        if let Some(old) = &self.verb {
            let message = self.ended(format!("Cannot use -{letter} with -{}", old.letter));
            return self.fail(here, message, "one command at a time");
        }
        let verb = Verb { letter, chain: None, number: None, other: None, word: here };
        Ok(self.verb.insert(verb))
    }

    fn chain_name(&self, here: usize, name: &str) -> Parsed {
        let help = "a chain's name has at most 28 characters and does not begin with - or !";
        if name.len() >= 29 {
            let most = if self.old() { 30 } else { 29 };
            let message = format!("chain name `{name}' too long (must be under {most} chars)");
            return self.fail(here, message, help);
        }
        if name.starts_with(['-', '!']) {
            if self.old() {
                return self.fail(here, "chain name not allowed to start with `-' or `!'\n", help);
            }
            let first = &name[..1];
            return self.fail(here, format!("chain name not allowed to start with `{first}'"), help);
        }
        if targets::is_target(name, self.program.family, self.old()) {
            return self.fail(here, self.ended("chain name may not clash with target name".to_owned()), help);
        }
        if name.chars().any(char::is_whitespace) || name.is_empty() {
            return self.fail(here, format!("Invalid chain name `{name}'"), help);
        }
        Ok(())
    }

    pub(super) fn short(&mut self, here: usize, letter: char, attached: Option<String>) -> Parsed {
        let option = self.words[here].text.clone();
        if self.invert && !"psdiofV".contains(letter) {
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
            'A' | 'C' | 'N' | 'D' | 'R' | 'I' | 'E' | 'P' => self.command(here, letter, &option, attached)?,
            'L' | 'S' | 'F' | 'Z' | 'X' => self.listing_command(here, letter, attached)?,
            't' => {
                let name = self.taken(&option, attached)?;
                if self.program.line.is_some() && self.table_given {
                    let program = self.program.name();
                    let message = format!("The -t option cannot be used in {program}.\n");
                    return self.fail(here, message, "the table stands behind *");
                }
                (self.table, self.table_given) = (name, true);
            }
            'p' => self.protocol(here, attached)?,
            's' | 'd' => {
                let (text, invert) = self.invertible(&option, attached)?;
                self.give(here, letter)?;
                self.addresses.push((letter, self.at - 1, text, invert));
            }
            'i' | 'o' => {
                let (text, invert) = self.invertible(&option, attached)?;
                let iface = self.iface(self.at - 1, &text, invert)?;
                self.give(here, letter)?;
                *(if letter == 'i' { &mut self.rule.input } else { &mut self.rule.output }) = iface;
            }
            'f' if self.program.family == Family::Ip6 => {
                let message = "`-f' is not supported in IPv6, use -m frag instead";
                return self.fail(here, message, "");
            }
            'f' => {
                self.give(here, 'f')?;
                self.rule.fragment = Some(std::mem::take(&mut self.invert));
            }
            'm' => {
                let name = self.taken(&option, attached)?;
                self.load(self.at - 1, &name)?;
            }
            'j' | 'g' => {
                let name = self.taken(&option, attached)?;
                self.give(here, 'j')?;
                self.goto = letter == 'g';
                self.jump(self.at - 1, &name)?;
            }
            'n' => {
                self.give(here, 'n')?;
                self.listing.numeric = true;
            }
            'v' => {
                self.verbose += 1;
                self.listing.verbose = true;
            }
            'x' => {
                self.give(here, 'x')?;
                self.listing.exact = true;
            }
            '0' => {
                self.give(here, '0')?;
                self.listing.line_numbers = true;
            }
            'w' | 'W' => self.wait(here, letter, attached)?,
            'M' => {
                self.taken(&option, attached)?;
            }
            'c' => self.set_counters(here, &option, attached)?,
            'h' => self.done = Some(Action::Say(help_text(self.program))),
            'V' => {
                let not = std::mem::take(&mut self.invert);
                let version = match not {
                    true => format!("Not {} ;-)\n", self.program.version()),
                    false => format!("{}\n", self.program.version_line()),
                };
                self.done = Some(Action::Say(version));
            }
            '4' | '6' if (letter == '4') == (self.program.family == Family::Ip) => {}
            '4' | '6' if self.program.line.is_some() => self.done = Some(Action::Nothing),
            '4' | '6' => {
                let stderr = format!("{}\n", self.program.try_help());
                let help = "the other family has a program of its own".to_owned();
                return Err(Failure { stderr, exit: 2, word: here, help });
            }
            _ => return self.unknown(here, "-", &letter.to_string()),
        }
        self.invert = false;
        Ok(())
    }

    fn taken(&mut self, option: &str, attached: Option<String>) -> Parsed<String> {
        match attached {
            Some(value) => Ok(value),
            None => self.value(option),
        }
    }

    fn command(&mut self, here: usize, letter: char, option: &str, attached: Option<String>) -> Parsed {
        let chain = self.taken(option, attached)?;
        if letter == 'N' {
            self.chain_name(here, &chain)?;
        }
        let (mut number, mut other) = (None, None);
        match letter {
            'D' | 'R' | 'I' => {
                let text = self.optional();
                if text.is_none() && letter == 'R' {
                    return self.fail(here, "-R requires a rule number", "-R chain number rule");
                }
                number = text.map(|t| self.rule_number(&t)).transpose()?;
            }
            'E' | 'P' => {
                other = self.optional();
                match (letter, &other) {
                    ('E', None) => {
                        return self.fail(here, "-E requires old-chain-name and new-chain-name", "");
                    }
                    ('P', None) => {
                        return self.fail(here, "-P requires a chain and a policy", "-P chain ACCEPT|DROP");
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        let verb = self.verb(here, letter)?;
        (verb.chain, verb.number, verb.other) = (Some(chain), number, other);
        Ok(())
    }

    fn listing_command(&mut self, here: usize, letter: char, attached: Option<String>) -> Parsed {
        let chain = attached.or_else(|| self.optional());
        let number = match letter {
            'L' | 'S' | 'Z' => self.optional().map(|t| self.rule_number(&t)).transpose()?,
            _ => None,
        };
        let with = |l: &str| self.verb.as_ref().is_some_and(|v| l.contains(v.letter));
        if letter == 'Z' && with("LS") {
            self.zero = Some(chain);
            return Ok(());
        }
        if "LS".contains(letter) && with("Z") {
            self.zero = Some(self.verb.take().and_then(|v| v.chain));
        }
        let verb = self.verb(here, letter)?;
        (verb.chain, verb.number) = (chain, number);
        Ok(())
    }

    fn wait(&mut self, here: usize, letter: char, attached: Option<String>) -> Parsed {
        if self.program.line.is_some() {
            let message = format!("You cannot use `-{letter}' from iptables-restore");
            return self.fail(here, message, "");
        }
        let text = attached.or_else(|| self.optional());
        let number = |t: &String| t.bytes().next().is_some_and(|b| b.is_ascii_digit());
        match (letter, text) {
            ('w', Some(t)) if !number(&t) => self.fail(here, "wait seconds not numeric", ""),
            ('W', None) => self.fail(here, "wait interval value required", ""),
            ('W', Some(t)) if !number(&t) => self.fail(here, "wait interval not numeric", ""),
            ('W', _) => {
                self.interval = true;
                self.warnings.push_str("Ignoring deprecated --wait-interval option.\n");
                Ok(())
            }
            _ => {
                self.waits = true;
                Ok(())
            }
        }
    }

    fn set_counters(&mut self, here: usize, option: &str, attached: Option<String>) -> Parsed {
        let packets = self.taken(option, attached)?;
        self.give(here, 'c')?;
        let (packets, bytes) = match packets.split_once(',') {
            Some((p, b)) => (p.to_owned(), b.to_owned()),
            None => match self.optional() {
                Some(bytes) => (packets, bytes),
                None => return self.fail(here, "-c requires packet and byte counter", ""),
            },
        };
        let leading = |t: &str| {
            let digits = t.bytes().take_while(u8::is_ascii_digit).count();
            t[..digits].parse::<u64>().ok()
        };
        let Some(p) = leading(&packets) else {
            return self.fail(self.at - 1, "-c packet counter not numeric", "");
        };
        let Some(b) = leading(&bytes) else {
            return self.fail(self.at - 1, "-c byte counter not numeric", "");
        };
        self.counters = (p, b);
        Ok(())
    }

    fn rule_number(&self, text: &str) -> Parsed<u32> {
        match option::number(text).filter(|n| (1..=i32::MAX as u64).contains(n)) {
            Some(n) => Ok(n as u32),
            None => {
                self.fail(self.at - 1, format!("Invalid rule number `{text}'"), "rules are numbered from 1")
            }
        }
    }

    pub(super) fn finish(&mut self) -> Parsed<Command> {
        if self.interval && !self.waits {
            return self.fail(
                0,
                "--wait-interval only makes sense with --wait\n",
                "-w SECONDS; -W does nothing",
            );
        }
        let policy = self.verb.as_ref().and_then(|v| v.other.as_deref());
        let target = self.target.as_ref().map(|t| t.1.as_str());
        if self.table == "nat" && (policy == Some("DROP") || target == Some("DROP")) && !self.old() {
            let message = "\nThe \"nat\" table is not intended for filtering, the use of DROP is therefore inhibited.\n\n";
            return self.fail(0, message, "drop in the filter table");
        }
        self.rule.matches = self.finish_matches()?;
        let target = self.finish_target()?;
        if self.at < self.words.len() {
            return self.fail(self.at, "unknown arguments found on commandline", "");
        }
        let Some(verb) = self.verb.take() else {
            return self.fail(0, "no command specified", "-A, -I, -D, -N, -F, -L, -S, …");
        };
        if self.invert {
            return self.fail(self.words.len() - 1, "nothing appropriate following !", "");
        }
        let mut sides = [vec![None], vec![None]];
        for (letter, at, text, invert) in std::mem::take(&mut self.addresses) {
            sides[usize::from(letter == 'd')] = self.addresses(at, &text, invert)?;
        }
        let [sources, destinations] = sides;
        let many = sources.len() > 1 || destinations.len() > 1;
        if many && sources.iter().chain(&destinations).any(|a| a.is_some_and(|a| a.invert)) {
            let message = "! not allowed with multiple source or destination IP addresses";
            return self.fail(verb.word, message, "one rule for each address");
        }
        if many && verb.letter == 'R' {
            let message = "Replacement rule does not specify a unique address";
            return self.fail(verb.word, message, "");
        }
        self.legal(&verb)?;
        if let Some(chain) = verb.chain.as_ref().filter(|c| c.len() >= 29 && !self.old()) {
            let message = format!("chain name `{chain}' too long (must be under 29 chars)");
            return self.fail(verb.word, message, "");
        }
        self.direction(&verb)?;
        let table = match Table::named(&self.table) {
            Some(table) => table,
            None => return Err(self.program.no_such_table(&self.table)),
        };
        self.rule.target = target;
        let mut rules = Vec::new();
        for src in &sources {
            for dst in &destinations {
                rules.push(Rule { src: *src, dst: *dst, ..self.rule.clone() });
            }
        }
        let action = self.action(verb, rules);
        Ok(Command {
            program: self.program,
            table,
            action,
            verbose: self.verbose,
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    fn action(&mut self, verb: Verb, mut rules: Vec<Rule>) -> Action {
        let counters = self.counters;
        let chain = verb.chain.clone();
        if "AIDRC".contains(verb.letter) {
            let chain = chain.unwrap_or_default();
            let number = verb.number.unwrap_or(1);
            return match verb.letter {
                'A' => Action::Append(chain, rules, counters),
                'I' => Action::Insert(chain, number, rules, counters),
                'R' => Action::Replace(chain, number, Box::new(rules.swap_remove(0)), counters),
                'C' => Action::Check(chain, rules),
                _ if verb.number.is_some() => Action::DeleteNumber(chain, number),
                _ => Action::Delete(chain, rules),
            };
        }
        self.listing.chain = chain.clone();
        self.listing.number = verb.number;
        self.listing.zero = self.zero.is_some();
        let listing = std::mem::take::<Listing>(&mut self.listing);
        match (verb.letter, chain) {
            ('N', Some(chain)) => Action::NewChain(chain),
            ('E', Some(chain)) => Action::Rename(chain, verb.other.unwrap_or_default()),
            ('P', Some(chain)) => {
                let counters = self.given.iter().any(|g| g.0 == 'c').then_some(counters);
                Action::Policy(chain, verb.other.unwrap_or_default(), counters)
            }
            ('X', chain) => Action::DeleteChain(chain),
            ('F', chain) => Action::Flush(chain),
            ('Z', chain) => Action::Zero(chain, verb.number),
            ('S', _) => Action::Save(listing),
            _ => Action::List(listing),
        }
    }

    /// Notes an option that may be given once (`set_option`).
    pub(super) fn give(&mut self, here: usize, letter: char) -> Parsed {
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
                return self.fail(at, format!("Illegal option `-{letter}' with this command"), help);
            }
        }
        Ok(())
    }

    fn direction(&self, verb: &Verb) -> Parsed {
        if !"AIDRC".contains(verb.letter) {
            return Ok(());
        }
        let chain = verb.chain.as_deref().unwrap_or("");
        let with = |what: &str| format!("Can't use -{what} with {chain}\n");
        if self.rule.output.is_some() && matches!(chain, "PREROUTING" | "INPUT") {
            return self.fail(verb.word, with("o"), "the way out is not known yet in this chain");
        }
        if self.rule.input.is_some() && matches!(chain, "POSTROUTING" | "OUTPUT") {
            return self.fail(verb.word, with("i"), "the way in is not known any more in this chain");
        }
        Ok(())
    }

    /// What every match needs, once all words are read.
    fn finish_matches(&mut self) -> Parsed<Vec<Match>> {
        let head: Head = self.head();
        let mut made = Vec::new();
        for loaded in self.loaded.iter().filter(|l| !l.is_target) {
            let Some(ext) = matches::find(loaded.name, head.family) else { continue };
            let checked = (ext.check)(&loaded.seen, &head);
            let table = || match self.old() && loaded.name != "mark" && loaded.name != "comment" {
                true if loaded.seen.0.is_empty() && loaded.name != "icmp" => {
                    option::check_table(loaded.name, loaded.options, &loaded.seen)
                }
                true => Ok(()),
                false => option::check_table(loaded.name, loaded.options, &loaded.seen),
            };
            if let Err((message, help)) = checked.and_then(|()| table()) {
                return self.fail(0, message, &help);
            }
            made.push((ext.make)(&loaded.seen, &head));
        }
        Ok(made)
    }

    fn finish_target(&mut self) -> Parsed<Target> {
        let head = self.head();
        let Some((word, name)) = self.target.take() else { return Ok(Target::None) };
        if self.goto {
            return Ok(Target::Goto(name));
        }
        if let Some(loaded) = self.loaded.iter().find(|l| l.is_target)
            && let Some(ext) = targets::find(loaded.name, head.family)
        {
            let checked = (ext.check)(&loaded.seen, &head);
            let whole = checked.and_then(|()| match self.old() && !loaded.seen.0.is_empty() {
                true => Ok(()),
                false => option::check_table(loaded.name, loaded.options, &loaded.seen),
            });
            if let Err((message, help)) = whole {
                return self.fail(word, message, &help);
            }
            return Ok((ext.make)(&loaded.seen, &head));
        }
        Ok(match name.as_str() {
            "ACCEPT" => Target::Verdict(Verdict::Accept),
            "DROP" => Target::Verdict(Verdict::Drop),
            "RETURN" => Target::Return,
            _ => Target::Jump(name),
        })
    }
}

fn help_text(program: Program) -> String {
    let p = program.name();
    let version = program.version_line();
    format!(
        "{version}\n\nUsage: {p} -[ACD] chain rule-specification [options]\n       {p} -I chain [rulenum] rule-specification [options]\n       {p} -R chain rulenum \
         rule-specification [options]\n       {p} -D chain rulenum [options]\n       {p} -[LS] [chain [rulenum]] [options]\n       {p} -[FZ] [chain] [options]\n       \
         {p} -[NX] chain\n       {p} -E old-chain-name new-chain-name\n       {p} -P chain target [options]\n       {p} -h (print this help information)\n"
    )
}
