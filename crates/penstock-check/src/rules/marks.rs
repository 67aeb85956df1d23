//! PS20x: marks: who sets them, where, and who reads them.

use crate::facts::{Device, Facts, What};
use crate::filters::{Field, Filter};
use crate::finding::{Found, Rule, Say};
use crate::marks::{NftMark, Ruled, number};
use penstock_lang::iptables::{Connmark, Edit, Match, Table, Target};
use penstock_model::Handle;
use std::collections::{BTreeMap, BTreeSet};

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS200",
        "a filter waits for a mark that nothing sets",
        "fw filters (and u32's `match mark`) see the mark that netfilter or an action put on the packet. Without a rule that sets it the filter never matches.",
        unset,
    ),
    Rule::warning(
        "PS201",
        "hexadecimal and decimal marks mixed up",
        "Marks are numbers: iptables and `handle N fw` take 10 as ten and 0x10 as sixteen. Class ids are hexadecimal without 0x, which makes it easy to mix them up.",
        twin,
    ),
    Rule::warning(
        "PS202",
        "a mark that nothing reads",
        "No filter, no rule and no routing rule looks at this mark: what it marks goes where unmarked packets go.",
        unread,
    ),
    Rule::warning(
        "PS203",
        "marks are not set yet at ingress",
        "Packets meet the ingress qdisc, and an ifb fed from it, before netfilter: PREROUTING comes later. There the mark is still 0. Restore it from the connection \
         (`action connmark`) or match the headers.",
        at_ingress,
    ),
    Rule::warning(
        "PS204",
        "marked on the wrong side",
        "The rule marks packets that come in by the device on whose way out the filter stands, or that leave by another one. The filter sees none of them.",
        wrong_side,
    ),
    Rule::warning(
        "PS205",
        "marked in INPUT",
        "Packets in INPUT are for this machine and leave by no device: no qdisc sees the mark.",
        in_input,
    ),
    Rule::warning(
        "PS206",
        "local packets do not pass PREROUTING",
        "What this machine sends itself goes through OUTPUT and POSTROUTING. On a machine with one device everything that leaves is its own.",
        local_output,
    ),
    Rule::warning(
        "PS207",
        "a mark set in the nat table",
        "The nat table sees the first packet of each connection only; the others stay unmarked. Marks belong in mangle.",
        in_nat,
    ),
];

/// Filters that ask for a mark.
pub(super) fn fw(facts: &Facts) -> impl Iterator<Item = (&Device, &Filter)> {
    let by_mark =
        |f: &&Filter| f.kind == "fw" && f.handle != 0 || f.tests.contains_key(&Field::Mark) && f.kind != "fw";
    facts.devices.iter().flat_map(move |d| d.filters.iter().filter(by_mark).map(move |f| (d, f)))
}

/// The mark that a filter asks for, and its mask.
pub(super) fn wanted(filter: &Filter) -> (u32, u32) {
    let bits = filter.tests.get(&Field::Mark).copied();
    bits.map_or((filter.handle, u32::MAX), |b| (b.value & b.mask, b.mask))
}

/// Marks that tc's own actions set; `None` where nobody can tell.
fn by_actions(facts: &Facts) -> Option<BTreeSet<u32>> {
    let mut marks = BTreeSet::new();
    for step in &facts.steps {
        if step.has("connmark")
            || step.has("ctinfo")
            || step.has("bpf")
            || step.words.iter().any(|w| w == "pedit") && step.has("mark")
        {
            return None;
        }
        if step.has("skbedit") {
            marks.extend(step.value(&["mark"]).and_then(|m| number(m.split('/').next().unwrap_or(""))));
        }
    }
    Some(marks)
}

/// Every mark that is set, and what is left of them under each mask that a filter looks through.
struct Set {
    marks: BTreeSet<u32>,
    masked: BTreeMap<u32, BTreeSet<u32>>,
}

impl Set {
    /// `None` where some are set that nobody can tell.
    fn of(facts: &Facts) -> Option<Self> {
        let mut marks: BTreeSet<u32> = facts.netfilter.marks()?.into_iter().map(|m| m.0).collect();
        marks.extend(by_actions(facts)?);
        let masks: BTreeSet<u32> = fw(facts).map(|(_, f)| wanted(f).1).collect();
        let under = |mask: u32| (mask, marks.iter().map(|m| m & mask).collect());
        let masked = masks.into_iter().map(under).collect();
        Some(Self { marks, masked })
    }

    fn fits(&self, filter: &Filter) -> bool {
        let (value, mask) = wanted(filter);
        value == 0 || self.masked.get(&mask).is_some_and(|m| m.contains(&value))
    }
}

/// 10 for 0x10, and the other way round.
fn twins(mark: u32) -> Vec<u32> {
    let as_hex = u32::from_str_radix(&mark.to_string(), 16).ok();
    let as_decimal = format!("{mark:x}").parse().ok();
    as_hex.into_iter().chain(as_decimal).filter(|t| *t != mark).collect()
}

/// Whether another program sets the marks: the script has to do with none itself, and is not a whole set-up or says where they come from.
fn marked_elsewhere(facts: &Facts) -> bool {
    let firewall = |s: &crate::facts::Step| {
        matches!(s.program(), "iptables" | "ip6tables" | "nft" | "iptables-restore" | "ip6tables-restore")
    };
    !facts.steps.iter().any(firewall)
        && (!facts.installed()
            || facts.source.mentions(&["firewall", "nftables", "nft", "ufw", "shorewall", "firewalld"]))
}

fn unset(facts: &Facts, found: &mut Found) {
    let Some(set) = Set::of(facts) else { return };
    let marks = &set.marks;
    if marks.is_empty() && marked_elsewhere(facts) {
        return;
    }
    for (_, filter) in fw(facts) {
        let (value, mask) = wanted(filter);
        if set.fits(filter) || twins(value).iter().any(|t| marks.contains(t)) || value & !mask != 0 {
            continue;
        }
        // The rule that sets it was refused, and that is said.
        let refused = |s: &crate::facts::Step| {
            let text = matches!(&s.what, What::Rules(t) if t.contains("mark"));
            if !s.ok() && text {
                return true;
            }
            let set = s
                .value(&["--set-mark", "--set-xmark"])
                .and_then(|m| number(m.split('/').next().unwrap_or("")));
            !s.ok() && set == Some(value)
        };
        if facts.steps.iter().any(refused) {
            continue;
        }
        let step = &facts.steps[filter.step];
        let have = match marks.is_empty() {
            true => "No command of the script sets any mark.".to_owned(),
            false => format!(
                "Marks that are set: {}.",
                marks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            ),
        };
        let fix = format!(
            "iptables -t mangle -A POSTROUTING -o {} -p tcp --dport 22 -j MARK --set-mark {value}",
            step.value(&["dev"]).unwrap_or("eth0")
        );
        found.at(
            filter.step,
            step.value(&["handle"]).unwrap_or("mark"),
            Say::new(format!("nothing sets mark {value}"), have, fix),
        );
    }
}

fn twin(facts: &Facts, found: &mut Found) {
    let Some(set) = Set::of(facts) else { return };
    for (_, filter) in fw(facts) {
        let (value, _) = wanted(filter);
        let near = twins(value).into_iter().find(|t| set.marks.contains(t));
        if let Some(near) = near.filter(|_| !set.fits(filter)) {
            let step = &facts.steps[filter.step];
            let word = step.value(&["handle"]).unwrap_or("mark");
            // As the rules that set it write it.
            let as_written = word.starts_with("0x");
            let reason =
                format!("The filter waits for {value} ({value:#x}), the rules set {near} ({near:#x}).");
            found.at(
                filter.step,
                word,
                Say::new(
                    format!("mark {value} is never set, but {near:#x} is"),
                    reason,
                    step.with("handle", &if as_written { near.to_string() } else { format!("{near:#x}") }),
                ),
            );
        }
    }
}

/// What looks at marks, gathered once: a script may have thousands of rules and as many filters.
struct Read {
    /// Somebody looks at marks in a way that no single number tells.
    all: bool,
    /// By mask, the values that filters and matches ask for.
    by_mask: BTreeMap<u32, BTreeSet<u32>>,
    /// Values that filters ask for: a mark whose twin is among them is mixed up rather than unread.
    values: BTreeSet<u32>,
}

impl Read {
    /// By filters alone.
    fn by_filters(facts: &Facts) -> Self {
        let by_kind = |f: &Filter| {
            f.kind == "fw" && f.handle == 0
                || matches!(f.kind.as_str(), "flow" | "bpf" | "basic")
                || f.options.has("ct_mark")
        };
        let all = facts.devices.iter().flat_map(|d| &d.filters).any(by_kind);
        let mut read = Self { all, by_mask: BTreeMap::new(), values: BTreeSet::new() };
        for (_, filter) in fw(facts) {
            let (value, mask) = wanted(filter);
            read.by_mask.entry(mask).or_default().insert(value);
            read.values.insert(value);
        }
        read
    }

    /// By anything.
    fn by_all(facts: &Facts) -> Self {
        let mut read = Self::by_filters(facts);
        let netfilter = &facts.netfilter;
        read.all |= netfilter.texts
            || netfilter
                .rules
                .iter()
                .any(|r| matches!(r.rule.target, Target::Edit(Edit::Connmark { op: Connmark::Save, .. })))
            || facts
                .steps
                .iter()
                .any(|s| matches!(s.what, What::Rules(_)) || s.has("fwmark") && s.has("cake"));
        for matched in netfilter.rules.iter().flat_map(|r| &r.rule.matches) {
            if let Match::Mark { mark, mask, .. } | Match::Connmark { mark, mask, .. } = matched
                && *mark != 0
            {
                read.by_mask.entry(*mask).or_default().insert(*mark);
            }
        }
        for pair in facts.steps.iter().flat_map(|s| s.words.windows(2)).filter(|w| w[0] == "fwmark") {
            let value = number(pair[1].split('/').next().unwrap_or(""));
            read.by_mask.entry(u32::MAX).or_default().extend(value);
        }
        read
    }

    fn sees(&self, mark: u32) -> bool {
        self.all
            || self.by_mask.iter().any(|(mask, values)| values.contains(&(mark & mask)))
            || twins(mark).iter().any(|t| self.values.contains(t))
    }
}

fn unread(facts: &Facts, found: &mut Found) {
    if fw(facts).next().is_none() {
        return;
    }
    unread_by_texts(facts, found);
    let readers = Read::by_all(facts);
    for ruled in &facts.netfilter.rules {
        let Target::Edit(Edit::Mark { value, mask }) = ruled.rule.target else { continue };
        if value != 0 && mask == u32::MAX && !readers.sees(value) {
            let step = &facts.steps[ruled.step];
            let read: Vec<String> = fw(facts).map(|(_, f)| wanted(f).0.to_string()).take(8).collect();
            let fix = fw(facts).next().map_or(String::new(), |(d, f)| {
                format!(
                    "tc filter add dev {} parent {} protocol ip prio {} handle {value} fw flowid {}",
                    d.name,
                    f.parent,
                    f.prio,
                    f.classid.unwrap_or(Handle::new(1, 1))
                )
            });
            let word = step.value(&["--set-mark", "--set-xmark"]).unwrap_or("");
            found.at(
                ruled.step,
                word,
                Say::new(
                    format!("nothing reads mark {value}"),
                    format!("Filters look for {}.", read.join(", ")),
                    fix,
                ),
            );
        }
    }
}

/// Marks that `nft` sets and nobody reads. Where a text looks at marks in another way than by a number, all of them are read.
fn unread_by_texts(facts: &Facts, found: &mut Found) {
    let netfilter = &facts.netfilter;
    if netfilter.unknown
        || netfilter.rules.iter().any(|r| matches!(r.rule.target, Target::Edit(Edit::Connmark { .. })))
    {
        return;
    }
    let mut read = BTreeSet::new();
    for step in &facts.steps {
        let What::Rules(text) = &step.what else { continue };
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || c == ';')
            .filter(|w| !w.is_empty() && *w != "==")
            .collect();
        for pair in words.windows(2).filter(|w| w[0] == "mark" && w[1] != "set") {
            let Some(mark) = number(pair[1]) else { return };
            read.insert(mark);
        }
    }
    let mut readers = Read::by_filters(facts);
    readers.all |= facts.steps.iter().any(|s| s.has("fwmark"));
    for &(mark, at) in &netfilter.others {
        if mark == 0 || readers.sees(mark) || read.contains(&mark) {
            continue;
        }
        let step = &facts.steps[at];
        let lines = facts.source.lines.iter().enumerate().skip(step.line.saturating_sub(1) as usize);
        let place = lines.take(400).find_map(|(n, line)| {
            let word = line.split_once("mark set ")?.1.split([' ', ';', '}', '"']).next()?;
            (number(word) == Some(mark)).then_some((n as u32 + 1, word))
        });
        let filters: Vec<String> = fw(facts).map(|(_, f)| wanted(f).0.to_string()).take(8).collect();
        let say = Say::new(
            format!("nothing reads mark {mark}"),
            format!("Filters look for {}.", filters.join(", ")),
            fw(facts).next().map_or(String::new(), |(d, f)| {
                let class = f.classid.unwrap_or(Handle::new(1, 1));
                format!(
                    "tc filter add dev {} parent {} protocol ip prio {} handle {mark} fw flowid {class}",
                    d.name, f.parent, f.prio
                )
            }),
        );
        match place {
            Some((line, word)) => {
                let text = &facts.source.lines[line as usize - 1];
                let column = text.find(word).map_or(0, |b| text[..b].chars().count() as u32 + 1);
                found.at_line(line, column, word.len() as u32, say);
            }
            None => found.at(at, "", say),
        }
    }
}

/// ifb devices that are fed from the ingress hook.
pub fn fed_from_ingress(facts: &Facts) -> BTreeSet<&str> {
    let from = facts
        .devices
        .iter()
        .flat_map(|d| &d.filters)
        .filter(|f| f.parent.major() == 0xffff && f.parent.minor() != 0xfff3);
    from.flat_map(|f| f.actions().filter(|a| a.0 == "mirred").map(|_| f.step).collect::<Vec<_>>())
        .filter_map(|step| {
            let words = &facts.steps[step].words;
            let at = words.iter().rposition(|w| w == "dev")?;
            words.get(at + 1).map(String::as_str)
        })
        .collect()
}

fn at_ingress(facts: &Facts, found: &mut Found) {
    let fed = fed_from_ingress(facts);
    // Restored on the way in, the mark is there.
    let sets = |s: &crate::facts::Step| s.has("skbedit") && s.has("mark");
    let restored = facts.steps.iter().any(|s| s.has("connmark") || s.has("ctinfo") || sets(s));
    for (device, filter) in fw(facts) {
        let direct = filter.parent.major() == 0xffff && filter.parent.minor() != 0xfff3;
        if (direct || fed.contains(device.name.as_str())) && !restored && wanted(filter).0 != 0 {
            let step = &facts.steps[filter.step];
            let place = if direct {
                "the ingress qdisc".to_owned()
            } else {
                format!("{}, which is fed from ingress", device.name)
            };
            let fix = facts.steps.iter().find(|s| s.has("redirect")).map_or(String::new(), |s| {
                s.text().replacen("action mirred", "action connmark action mirred", 1)
            });
            let reason = format!("The filter is at {place}; netfilter's rules run after it.");
            found.at(
                filter.step,
                step.value(&["handle"]).unwrap_or("fw"),
                Say::new("no packet has a mark yet here", reason, fix),
            );
        }
    }
}

/// Rules that set a mark which an egress filter reads, with the devices of those filters.
fn marking(facts: &Facts) -> impl Iterator<Item = (&Ruled, u32, Vec<&str>)> {
    let fed = fed_from_ingress(facts);
    // By mask and by value, so that many rules and many filters meet in a few steps.
    let mut readers: BTreeMap<u32, BTreeMap<u32, Vec<&str>>> = BTreeMap::new();
    for (device, filter) in fw(facts) {
        let (want, mask) = wanted(filter);
        if want != 0 && filter.parent.major() != 0xffff && !fed.contains(device.name.as_str()) {
            readers.entry(mask).or_default().entry(want).or_default().push(&device.name);
        }
    }
    facts.netfilter.rules.iter().filter_map(move |r| {
        let Target::Edit(Edit::Mark { value, .. }) = r.rule.target else { return None };
        let devices = readers.iter().filter_map(|(mask, by)| by.get(&(value & mask))).flatten().copied();
        Some((r, value, devices.collect()))
    })
}

/// Marks that rules set on another way than through this chain.
fn outside(facts: &Facts, chain: &str) -> BTreeSet<u32> {
    let ways = |ruled: &Ruled| facts.netfilter.ways(ruled).iter().any(|w| w.0 != chain);
    marking(facts).filter(|m| ways(m.0)).map(|m| m.1).collect()
}

fn wrong_side(facts: &Facts, found: &mut Found) {
    let n = &facts.netfilter;
    if n.unknown {
        return;
    }
    // Where a connection's mark comes back to packets of the other direction, the mark is theirs too.
    let comes_in = |ruled: &Ruled, dev: &str| {
        let ways = n.ways(ruled);
        !ways.is_empty() && ways.iter().all(|w| w.1.iter().any(|i| !i.invert && !i.wildcard && i.name == dev))
    };
    let restores =
        |r: &&Ruled| matches!(r.rule.target, Target::Edit(Edit::Connmark { op: Connmark::Restore, .. }));
    let back: Vec<&Ruled> = n.rules.iter().filter(restores).collect();
    for (ruled, value, devices) in marking(facts).filter(|m| !m.2.is_empty()) {
        let ways = facts.netfilter.ways(ruled);
        // All of its packets leave by another card. What leaves by a tunnel, a bridge or a VLAN leaves by a card as well.
        let card = |name: &str| {
            ["eth", "en", "wan", "lan"].iter().any(|p| name.starts_with(p))
                && !name.contains(['.', ':', '@', '+'])
        };
        let leaves = |dev: &&str| {
            let beside = |o: &penstock_lang::iptables::Iface| {
                !o.invert && !o.wildcard && o.name != **dev && card(&o.name)
            };
            let stacked =
                facts.devices.iter().any(|d| d.name == **dev && (d.master.is_some() || !d.kind.is_empty()));
            card(dev) && !stacked && !ways.is_empty() && ways.iter().all(|w| w.2.iter().any(beside))
        };
        if devices.iter().all(leaves) && back.is_empty() && facts.foreign.contains(devices[0]) {
            let out = ruled.rule.output.as_ref().map_or("another device", |o| o.name.as_str());
            let dev = devices[0];
            let reason = format!("The filter for mark {value} stands on the way out of {dev}.");
            let say = Say::new(format!("mark {value} is set on packets that leave by {out}"), reason, "");
            found.at(ruled.step, "-o", say);
            continue;
        }
        let wrong = |dev: &&str| {
            !ways.is_empty()
                && ways.iter().all(|w| w.1.iter().any(|i| !i.invert && !i.wildcard && i.name == **dev))
        };
        // That INPUT is no way out is said by itself.
        let stays = ways.iter().all(|w| w.0 == "INPUT");
        let returns = devices.iter().any(|dev| back.iter().any(|r| !comes_in(r, dev)));
        if !stays && !returns && devices.iter().all(wrong) {
            let step = &facts.steps[ruled.step];
            let dev = devices[0];
            let reason = format!(
                "The rule marks what comes in by {dev}; the filter for mark {value} stands on the way out of {dev}."
            );
            // Where another rule marks what leaves, this one is no slip of the side.
            let alone = !marking(facts).any(|m| m.1 == value && m.0.step != ruled.step);
            let fix = match alone && step.has("-i") && !step.has("-o") {
                true => step.text().replace("PREROUTING", "POSTROUTING").replace(" -i ", " -o "),
                false => String::new(),
            };
            found.at(
                ruled.step,
                "-i",
                Say::new(format!("mark {value} is set on packets that do not leave by {dev}"), reason, fix),
            );
        }
    }
}

/// The same of nft's chains.
fn in_input_of_nft(facts: &Facts, found: &mut Found) {
    let netfilter = &facts.netfilter;
    for NftMark { mark, hook, step: at, line, .. } in &netfilter.hooked {
        let setters = netfilter.hooked.iter().filter(|h| h.mark == *mark);
        let input = |h: &Option<String>| h.as_deref() == Some("input");
        let alone = input(hook) && setters.clone().all(|h| input(&h.hook));
        // Those of iptables that set it elsewhere.
        let by_rules = netfilter.rules.iter().any(
            |r| matches!(r.rule.target, Target::Edit(Edit::Mark { value, mask }) if value == mark & mask && value != 0),
        );
        let filter = fw(facts).find(|(_, f)| wanted(f).0 == *mark && *mark != 0);
        if let (Some((device, _)), true, false) = (filter, alone, by_rules) {
            let reason = format!("The filter for mark {mark} stands on the way out of {}.", device.name);
            found.at_text(
                *at,
                *line,
                "mark",
                Say::new(format!("mark {mark} is set in the hook input, where packets stay"), reason, ""),
            );
        }
    }
}

/// A rule of INPUT for the packets that go the other way: they leave by the device, and what was their source is their destination.
fn turned(words: &[String]) -> String {
    const PAIRS: [(&str, &str); 7] = [
        ("INPUT", "OUTPUT"),
        ("-i", "-o"),
        ("-s", "-d"),
        ("--source", "--destination"),
        ("--sport", "--dport"),
        ("--sports", "--dports"),
        ("--source-port", "--destination-port"),
    ];
    let other = |w: &String| {
        let pair = PAIRS.iter().find_map(|(a, b)| match w.as_str() {
            w if w == *a => Some(*b),
            w if w == *b => Some(*a),
            _ => None,
        });
        pair.map_or(w.clone(), str::to_owned)
    };
    penstock_lang::token::Line::of_words(&words.iter().map(other).collect::<Vec<_>>()).source
}

fn in_input(facts: &Facts, found: &mut Found) {
    if facts.netfilter.travels() {
        return;
    }
    in_input_of_nft(facts, found);
    let elsewhere = outside(facts, "INPUT");
    for (ruled, value, devices) in marking(facts).filter(|m| !m.2.is_empty()) {
        let ways = facts.netfilter.ways(ruled);
        if !ways.is_empty() && ways.iter().all(|w| w.0 == "INPUT") && !elsewhere.contains(&value) {
            let step = &facts.steps[ruled.step];
            let reason = format!("The filter for mark {value} stands on the way out of {}.", devices[0]);
            found.at(
                ruled.step,
                "INPUT",
                Say::new(
                    format!("mark {value} is set in INPUT, where packets stay"),
                    reason,
                    turned(&step.words),
                ),
            );
        }
    }
}

fn local_output(facts: &Facts, found: &mut Found) {
    let real = facts.foreign.iter().filter(|n| !n.starts_with("ifb")).count();
    let made = facts.devices.iter().any(|d| !d.kind.is_empty() && d.kind != "ifb" && d.name != "lo");
    let routes = facts.steps.iter().any(|s| {
        s.words.iter().any(|w| {
            w.contains("ip_forward")
                || w.contains("forwarding")
                || w == "FORWARD"
                || w == "MASQUERADE"
                || w == "SNAT"
                || w == "-i"
                || w == "-o"
        })
    });
    // Which device an unknown name is, and how many others there are, nobody knows.
    let guessed = facts.steps.iter().any(|s| s.guessed.as_ref().is_some_and(|g| !g.words.is_empty()));
    if real != 1
        || guessed
        || made
        || routes
        || facts.netfilter.travels()
        || facts.source.mentions(&["ip_forward", "router", "gateway", "lan"])
    {
        return;
    }
    let elsewhere = outside(facts, "PREROUTING");
    for (ruled, value, devices) in marking(facts).filter(|m| !m.2.is_empty()) {
        let ways = facts.netfilter.ways(ruled);
        if !ways.is_empty() && ways.iter().all(|w| w.0 == "PREROUTING") && !elsewhere.contains(&value) {
            let step = &facts.steps[ruled.step];
            let reason = format!(
                "{} is the only device here: what leaves by it is this machine's own and goes through OUTPUT.",
                devices[0]
            );
            found.at(
                ruled.step,
                "PREROUTING",
                Say::new(
                    format!("mark {value} is set where local packets do not pass"),
                    reason,
                    step.text().replace("PREROUTING", "OUTPUT"),
                ),
            );
        }
    }
}

fn in_nat(facts: &Facts, found: &mut Found) {
    for ruled in facts
        .netfilter
        .rules
        .iter()
        .filter(|r| r.table == Table::Nat && matches!(r.rule.target, Target::Edit(Edit::Mark { .. })))
    {
        let step = &facts.steps[ruled.step];
        // In mangle a command behind this one would take it away.
        let empties = |s: &crate::facts::Step| {
            s.program() == step.program() && s.has("mangle") && (s.has("-F") || s.has("--flush"))
        };
        let emptied = facts.steps[ruled.step..].iter().any(empties);
        let say = Say::new(
            "only the first packet of a connection is marked",
            "The nat table sees no other.".to_owned(),
            step.with("-t", "mangle"),
        );
        found.at(ruled.step, "nat", say.unsure(emptied));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_input_is_turned() {
        let words = |t: &str| t.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let rule =
            "iptables -t mangle -A INPUT -i eth0 -s 198.51.100.0/24 -p tcp --dport 443 -j MARK --set-mark 7";
        let other =
            "iptables -t mangle -A OUTPUT -o eth0 -d 198.51.100.0/24 -p tcp --sport 443 -j MARK --set-mark 7";
        assert_eq!(turned(&words(rule)), other);
        assert_eq!(turned(&words(&other.replace("OUTPUT", "INPUT"))), rule.replace("INPUT", "OUTPUT"));
    }
}
