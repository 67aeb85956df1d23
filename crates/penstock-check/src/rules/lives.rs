//! PS214 to PS219: how long marks live: packets, connections, hooks, and what CLASSIFY does to filters.

use crate::facts::{Facts, Step};
use crate::finding::{Found, Rule, Say};
use crate::marks::{NftMark, Ruled};
use penstock_lang::iptables::extension::state;
use penstock_lang::iptables::{Connmark, Edit, Match, Table, Target};
use penstock_model::Handle;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS214",
        "marks are saved to connections and never put back",
        "CONNMARK --save-mark copies a packet's mark to its connection. The packets that follow begin with mark 0 all the same; `--restore-mark` (or tc's `action \
         connmark`, `action ctinfo`) puts it \
         on them. Without, saving does nothing.",
        never_restored,
    ),
    Rule::warning(
        "PS215",
        "only the first packet of each connection is marked",
        "A mark belongs to a packet. A rule for NEW connections marks the first packet alone, unless the mark is saved (`CONNMARK --save-mark`) and restored on the \
         others. The same holds for \
         CLASSIFY, whose priority no connection keeps.",
        only_new,
    ),
    Rule::warning(
        "PS216",
        "a restored mark overwrites the one just set",
        "CONNMARK --restore-mark sets the packet's mark to that of its connection, 0 where none was saved. Behind a rule that marks it undoes that. Restore first, \
         then mark what has no mark yet, then save.",
        restored_late,
    ),
    Rule::warning(
        "PS217",
        "marks are saved before any is set",
        "CONNMARK --save-mark copies what the packet has at this moment. Packets pass PREROUTING, then FORWARD or INPUT, then POSTROUTING (their own way: OUTPUT, \
         POSTROUTING), and rules from the top \
         down. Saved before the first MARK the connection's mark stays 0.",
        saved_early,
    ),
    Rule::warning(
        "PS218",
        "forwarded packets do not pass OUTPUT",
        "OUTPUT has only what this machine sends itself. Packets of hosts behind it pass PREROUTING, FORWARD and POSTROUTING.",
        lan_in_output,
    ),
    Rule::warning(
        "PS219",
        "CLASSIFY for all packets goes before every filter",
        "HTB, HFSC, DRR, QFQ and prio look at the packet's priority first. Where it names one of their classes, filters are not asked. A CLASSIFY rule without a \
         condition so takes every packet; \
         as a default write `default` of the qdisc, or put the wide rule first and the narrow ones behind it.",
        classify_all,
    ),
];

fn is(op: Connmark) -> impl Fn(&&Ruled) -> bool {
    move |r| matches!(r.rule.target, Target::Edit(Edit::Connmark { op: o, .. }) if o == op)
}

/// Whether something puts connections' marks back on packets, or reads them where they are.
fn restores(facts: &Facts) -> bool {
    let n = &facts.netfilter;
    let reads = |m: &Match| matches!(m, Match::Connmark { .. });
    n.texts
        || n.unknown
        || n.rules.iter().any(|r| is(Connmark::Restore)(&r) || r.rule.matches.iter().any(reads))
        || facts
            .steps
            .iter()
            .any(|s: &Step| s.has("connmark") && s.program() == "tc" || s.has("ctinfo") || s.has("ct_mark"))
        || facts.source.mentions(&["restore-mark", "nf-restore"])
}

/// Whether a rule is for the first packets of connections alone.
fn is_new(ruled: &Ruled) -> bool {
    ruled.rule.matches.iter().any(|m| match m {
        Match::Conntrack(c) => c.states.is_some_and(|(states, inverted)| {
            !inverted && states == state::NEW
                || inverted && states & state::NEW == 0 && states & state::ESTABLISHED != 0
        }),
        _ => false,
    })
}

fn sorts(target: &Target) -> bool {
    matches!(target, Target::Edit(Edit::Mark { .. } | Edit::Classify(_)))
}

fn never_restored(facts: &Facts, found: &mut Found) {
    if restores(facts) {
        return;
    }
    if let Some(save) = facts.netfilter.rules.iter().find(is(Connmark::Save)) {
        let program = save.family.program();
        let fix = format!("{program} -t mangle -I PREROUTING -j CONNMARK --restore-mark");
        let new = facts.netfilter.rules.iter().find(|r| is_new(r) && sorts(&r.rule.target));
        let more = new.map_or(String::new(), |n| {
            format!(
                " Line {} marks new connections only, so all later packets stay unmarked.",
                facts.steps[n.step].line
            )
        });
        let reason = format!("No rule restores a mark, and no action of tc does.{more}");
        found.at(save.step, "--save-mark", Say::new("what is saved here is never put back", reason, fix));
    }
}

fn only_new(facts: &Facts, found: &mut Found) {
    let n = &facts.netfilter;
    let kept = n.rules.iter().any(|r| is(Connmark::Save)(&r) || is(Connmark::Set)(&r));
    for ruled in n.rules.iter().filter(|r| is_new(r) && sorts(&r.rule.target)) {
        let classify = matches!(ruled.rule.target, Target::Edit(Edit::Classify(_)));
        if !classify && (kept || restores(facts))
            || facts.shaped().next().is_none()
            || ruled.table == Table::Nat
        {
            continue;
        }
        // A rule for the others of the same connections does what is missing.
        let other = n.rules.iter().any(|r| {
            r.step != ruled.step && r.rule.target == ruled.rule.target && !is_new(r) && r.table == ruled.table
        });
        if other {
            continue;
        }
        let step = &facts.steps[ruled.step];
        let what = if classify { "classified" } else { "marked" };
        let word = ["NEW", "--syn"].into_iter().find(|w| step.has(w)).unwrap_or("-j");
        let fix = match classify {
            true => String::new(),
            false => format!(
                "{0} -t mangle -I PREROUTING -j CONNMARK --restore-mark\n{0} -t mangle -A POSTROUTING -j CONNMARK --save-mark",
                ruled.family.program()
            ),
        };
        let reason = "The rule asks for NEW; the packets that follow are ESTABLISHED and go on as they are.";
        found.at(
            ruled.step,
            word,
            Say::new(format!("only the first packet of each connection is {what}"), reason, fix),
        );
    }
}

/// Whether a rule is for every packet of its chain that a mark may be on.
fn is_open(ruled: &Ruled) -> bool {
    let rule = &ruled.rule;
    rule.src.is_none() && rule.dst.is_none() && rule.matches.iter().all(|m| matches!(m, Match::Comment(_)))
}

fn restored_late(facts: &Facts, found: &mut Found) {
    for chain in facts.netfilter.by_chain().values() {
        let mut marked: Option<&Ruled> = None;
        for ruled in chain {
            match ruled.rule.target {
                Target::Edit(Edit::Mark { value, .. }) if value != 0 => marked = marked.or(Some(ruled)),
                Target::Edit(Edit::Connmark { op: Connmark::Save | Connmark::Set, .. }) => marked = None,
                Target::Edit(Edit::Connmark { op: Connmark::Restore, nfmask, .. }) if is_open(ruled) => {
                    let lost = |m: &&Ruled| {
                        let own = matches!(m.rule.target, Target::Edit(Edit::Mark { value, .. }) if value & nfmask != 0);
                        own && (ruled.rule.protocol.is_none() || ruled.rule.protocol == m.rule.protocol)
                            && (ruled.rule.input.is_none() || ruled.rule.input == m.rule.input)
                            && (ruled.rule.output.is_none() || ruled.rule.output == m.rule.output)
                    };
                    if let Some(before) = marked.filter(lost) {
                        let line = facts.steps[before.step].line;
                        let reason = format!(
                            "Line {line} marks packets of this chain; this rule puts the connection's mark over it, 0 where none was saved."
                        );
                        found.at(
                            ruled.step,
                            "--restore-mark",
                            Say::new("this overwrites the marks set above", reason, ""),
                        );
                    }
                }
                // Those that are marked leave here.
                Target::Verdict(_) | Target::Return
                    if ruled.rule.matches.iter().any(|m| matches!(m, Match::Mark { .. })) =>
                {
                    marked = None;
                }
                _ => {}
            }
        }
    }
}

/// Whether a packet may pass the first chain and later the second.
fn before(first: &str, then: &str) -> bool {
    match first {
        "PREROUTING" => matches!(then, "FORWARD" | "INPUT" | "POSTROUTING"),
        "FORWARD" | "OUTPUT" => then == "POSTROUTING",
        _ => false,
    }
}

/// nft's `ct mark set meta mark` before the first mark is set, all of it in one chain.
fn saved_early_by_nft(facts: &Facts, found: &mut Found) {
    let n = &facts.netfilter;
    let by_rules = n.rules.iter().any(|r| matches!(r.rule.target, Target::Edit(Edit::Mark { .. })));
    let edits = facts.tc_done().any(|(_, s, _)| s.has("skbedit"));
    if n.odd || by_rules || edits {
        return;
    }
    let saves_later = |m: &NftMark| n.saves.iter().any(|s| s.0 != m.chain || (s.1, s.2) >= (m.step, m.line));
    if n.hooked.is_empty() || n.hooked.iter().any(saves_later) {
        return;
    }
    if let (Some((chain, step, line)), Some(mark)) = (n.saves.first(), n.hooked.first()) {
        let reason = format!("The first mark, {}, is set further down in chain {chain}.", mark.mark);
        let say = Say::new("the marks are saved here before any is set", reason, "");
        found.at_text(*step, *line, "ct", say);
    }
}

fn saved_early(facts: &Facts, found: &mut Found) {
    saved_early_by_nft(facts, found);
    let n = &facts.netfilter;
    if n.texts || n.unknown {
        return;
    }
    let marks: Vec<(usize, &Ruled)> = n
        .rules
        .iter()
        .enumerate()
        .filter(|r| matches!(r.1.rule.target, Target::Edit(Edit::Mark { value, .. }) if value != 0))
        .collect();
    let saves: Vec<(usize, &Ruled)> =
        n.rules.iter().enumerate().filter(|r| is(Connmark::Save)(&r.1)).collect();
    if marks.is_empty() || n.rules.iter().any(|r| is(Connmark::Set)(&r)) {
        return;
    }
    let meets = |(m, mark): &(usize, &Ruled), (s, save): &(usize, &Ruled)| {
        if mark.family != save.family {
            return false;
        }
        if mark.chain == save.chain {
            return mark.table != save.table || m < s;
        }
        let (from, to) = (n.ways(mark), n.ways(save));
        // A chain that nobody jumps to is told of by itself.
        from.is_empty()
            || to.is_empty()
            || from.iter().any(|f| to.iter().any(|t| f.0 == t.0 || before(&f.0, &t.0)))
    };
    let of_family = |s: &Ruled| marks.iter().any(|m| m.1.family == s.family);
    if saves.iter().any(|s| of_family(s.1) && marks.iter().any(|m| meets(m, s))) {
        return;
    }
    for (_, save) in saves.iter().filter(|s| of_family(s.1)) {
        let Some((_, mark)) = marks.iter().find(|m| m.1.family == save.family) else { continue };
        let reason = format!(
            "The first mark is set in {} (line {}), which packets pass later.",
            mark.chain, facts.steps[mark.step].line
        );
        found.at(
            save.step,
            "--save-mark",
            Say::new("no packet has a mark yet where it is saved", reason, ""),
        );
    }
}

/// Whether the script's machine forwards packets of others, as far as the script says.
pub fn forwards(facts: &Facts) -> bool {
    let word = |w: &String| {
        matches!(w.as_str(), "MASQUERADE" | "SNAT" | "FORWARD")
            || w.contains("ip_forward")
            || w.contains("forwarding")
    };
    facts.steps.iter().flat_map(|s| &s.words).any(word)
        || facts.source.lines.iter().any(|l| l.contains("ip_forward") || l.contains("masquerade"))
}

fn lan_in_output(facts: &Facts, found: &mut Found) {
    if !forwards(facts) {
        return;
    }
    for mark in facts.netfilter.hooked.iter().filter(|m| m.hook.as_deref() == Some("output")) {
        let Some((addr, bits)) = mark.source.filter(|s| s.0.is_private()) else { continue };
        let own = super::direction::own_addresses(facts);
        if bits == 32 && own.iter().any(|a| u128::from(a.1) == u128::from(addr.to_bits())) {
            continue;
        }
        let reason = format!(
            "{addr}/{bits} is behind this machine, which forwards its packets; the hook output has only the machine's own."
        );
        let fix = "type filter hook forward priority mangle";
        let say = Say::new("packets of this source do not pass the hook output", reason, fix);
        found.at_text(mark.step, mark.line, "saddr", say);
    }
    for ruled in &facts.netfilter.rules {
        let sorts = matches!(
            ruled.rule.target,
            Target::Edit(
                Edit::Mark { .. }
                    | Edit::Classify(_)
                    | Edit::Dscp(_)
                    | Edit::Connmark { op: Connmark::Set, .. }
            )
        );
        let Some(src) = ruled.rule.src.filter(|s| !s.invert && sorts) else { continue };
        let ways = facts.netfilter.ways(ruled);
        let only = !ways.is_empty() && ways.iter().all(|w| w.0 == "OUTPUT");
        let private = std::net::Ipv4Addr::from(src.addr as u32).is_private() && src.mask >> 32 == 0;
        let own = super::direction::own_addresses(facts)
            .iter()
            .any(|a| src.matches(u128::from(a.1)) && src.mask as u32 == u32::MAX);
        if !only || !private || own {
            continue;
        }
        let step = &facts.steps[ruled.step];
        let reason = format!(
            "{} is behind this machine, which forwards its packets; OUTPUT has only the machine's own.",
            step.value(&["-s", "--source", "--src"]).unwrap_or("The source")
        );
        found.at(
            ruled.step,
            "OUTPUT",
            Say::new(
                "packets of this source do not pass OUTPUT",
                reason,
                step.with_word("OUTPUT", "FORWARD"),
            ),
        );
    }
}

fn classify_all(facts: &Facts, found: &mut Found) {
    for ruled in &facts.netfilter.rules {
        let Target::Edit(Edit::Classify(id)) = ruled.rule.target else { continue };
        let rule = &ruled.rule;
        let open = is_open(ruled) && rule.protocol.is_none() && rule.input.is_none();
        let ways = facts.netfilter.ways(ruled);
        // The last way out is every packet's.
        if !open || id == Handle::UNSPEC || !ways.iter().any(|w| w.0 == "POSTROUTING" && w.1.is_empty()) {
            continue;
        }
        let taken = |d: &&crate::facts::Device| {
            rule.output.as_ref().is_none_or(|o| o.matches(&d.name))
                && d.class(id).is_some_and(|c| c.children.is_empty())
                && d.filters.iter().any(|f| f.parent.qdisc() == id.qdisc())
        };
        let Some(device) = facts.devices.iter().find(taken) else { continue };
        let filters = device.filters.iter().filter(|f| f.parent.qdisc() == id.qdisc()).count();
        let step = &facts.steps[ruled.step];
        let reason = format!(
            "Every packet that leaves by {} has the priority {id}; its {filters} filters are never asked.",
            device.name
        );
        found.at(
            ruled.step,
            step.value(&["--set-class"]).unwrap_or("CLASSIFY"),
            Say::new(format!("all packets go to {id}, whatever filters say"), reason, ""),
        );
    }
}
