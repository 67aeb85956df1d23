//! PS225 and PS226: marks that are set behind the routing decision, and bits that connections keep for nobody.

use crate::facts::Facts;
use crate::finding::{Found, Rule, Say};
use penstock_lang::iptables::{Connmark, Edit, Family, Table, Target};

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS225",
        "a mark for a routing rule is set after routing",
        "`ip rule … fwmark` is asked when a packet is routed: behind PREROUTING for what comes in, and again behind mangle OUTPUT for what this machine sends. \
         INPUT, FORWARD and POSTROUTING come later, and so do the marks that are set there. Mark in PREROUTING (and OUTPUT).",
        routed,
    ),
    Rule::warning(
        "PS226",
        "marks are saved in other bits than those restored",
        "CONNMARK's masks say which bits go to the connection and which come back (`connmark_tg_shift`). Bits that are saved under one mask and restored under \
         another that shares none with it never meet: the packets that follow have mark 0 there. The same holds of bits that a filter looks at and that are saved, and \
         left out by the mask of `--restore-mark`.",
        bits,
    ),
];

/// A mark and its mask, as `ip rule` has it.
pub(super) fn wanted(word: &str) -> Option<(u32, u32)> {
    let number = |t: &str| match t.strip_prefix("0x").or_else(|| t.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => t.parse().ok(),
    };
    match word.split_once('/') {
        Some((value, mask)) => Some((number(value)?, number(mask)?)),
        None => Some((number(word)?, u32::MAX)),
    }
}

/// The same of marks that nft sets in chains of hooks behind routing.
fn routed_by_nft(facts: &Facts, found: &mut Found) {
    let n = &facts.netfilter;
    let sets = |r: &crate::marks::Ruled| {
        matches!(r.rule.target, Target::Edit(Edit::Mark { .. } | Edit::Connmark { .. }))
    };
    if n.unknown || facts.partial || n.rules.iter().any(sets) || !n.saves.is_empty() {
        return;
    }
    for step in facts.steps.iter().filter(|s| s.ok() && s.program() == "ip" && s.has("rule") && s.has("add"))
    {
        let Some((mark, mask)) = step.value(&["fwmark"]).and_then(wanted).filter(|w| w.0 != 0) else {
            continue;
        };
        let own = |value: u32| value & mask == mark & mask;
        let setters: Vec<_> = n.hooked.iter().filter(|h| own(h.mark)).collect();
        let late = |h: &&crate::marks::NftMark| {
            matches!(h.hook.as_deref(), Some("input" | "forward" | "postrouting"))
        };
        let all = n.others.iter().filter(|o| own(o.0)).count();
        if setters.is_empty() || !setters.iter().all(late) || setters.len() < all {
            continue;
        }
        for setter in setters {
            let hook = setter.hook.as_deref().unwrap_or("");
            let reason = format!(
                "Line {} (`{}`) is asked before {hook}, when the packet has no mark yet.",
                step.line,
                step.text()
            );
            let say = Say::new(format!("mark {mark:#x} comes too late to route by"), reason, "");
            found.at_text(setter.step, setter.line, "mark", say);
        }
    }
}

fn routed(facts: &Facts, found: &mut Found) {
    routed_by_nft(facts, found);
    let n = &facts.netfilter;
    let restores = |r: &crate::marks::Ruled| {
        matches!(r.rule.target, Target::Edit(Edit::Connmark { op: Connmark::Restore, .. }))
    };
    if n.texts || n.unknown || n.rules.iter().any(restores) {
        return;
    }
    for step in facts.steps.iter().filter(|s| s.ok() && s.program() == "ip" && s.has("rule")) {
        let adds = step.has("add") || step.has("a") || step.has("replace");
        let Some((mark, mask)) = step.value(&["fwmark"]).filter(|_| adds).and_then(wanted) else { continue };
        let family = if step.has("-6") { Family::Ip6 } else { Family::Ip };
        let setters: Vec<_> = n
            .rules
            .iter()
            .filter(|r| {
                r.family == family
                    && r.table == Table::Mangle
                    && matches!(r.rule.target, Target::Edit(Edit::Mark { value, .. }) if value & mask == mark & mask && mark != 0)
            })
            .collect();
        let late = |r: &&crate::marks::Ruled| {
            let ways = n.ways(r);
            !ways.is_empty()
                && ways.iter().all(|w| matches!(w.0.as_str(), "INPUT" | "FORWARD" | "POSTROUTING"))
        };
        if setters.is_empty() || !setters.iter().all(late) {
            continue;
        }
        for setter in setters {
            let at = &facts.steps[setter.step];
            let ways = n.ways(setter);
            let chain = ways.first().map_or(setter.chain.as_str(), |w| w.0.as_str());
            let reason = format!(
                "Line {} (`{}`) is asked before {chain}, when the packet has no mark yet.",
                step.line,
                step.text()
            );
            // What leaves by a device is known after routing alone.
            let movable = setter.rule.output.is_none() && setter.chain == chain && chain != "INPUT";
            let fix = if movable { at.with_word(chain, "PREROUTING") } else { String::new() };
            let word = if setter.chain == chain { chain } else { "-j" };
            found.at(
                setter.step,
                word,
                Say::new(format!("mark {mark:#x} comes too late to route by"), reason, fix),
            );
        }
    }
}

/// A filter that looks at bits that are saved, of which none comes back, and its mask. Who saves all bits may mean others.
fn kept_back(facts: &Facts, kept: u32, back: u32) -> Option<(&crate::filters::Filter, u32)> {
    let mut all = super::marks::fw(facts).map(|(_, f)| (f, super::marks::wanted(f).1));
    // Of the mark it waits for, some bits come back and some do not.
    let torn = |f: &crate::filters::Filter| {
        let mark = super::marks::wanted(f).0 & kept;
        mark & back != 0 && mark & !back != 0
    };
    all.find(|(f, mask)| {
        kept != u32::MAX && *mask != u32::MAX && mask & kept != 0 && (mask & back == 0 || torn(f))
    })
}

fn bits(facts: &Facts, found: &mut Found) {
    let n = &facts.netfilter;
    if n.texts || n.unknown {
        return;
    }
    let of = |wanted: Connmark| {
        n.rules.iter().filter_map(move |r| match r.rule.target {
            Target::Edit(Edit::Connmark { op, ctmask, nfmask, shift, .. }) if op == wanted => {
                Some((r, ctmask, nfmask, shift))
            }
            _ => None,
        })
    };
    if of(Connmark::Set).next().is_some() {
        return;
    }
    for family in [Family::Ip, Family::Ip6] {
        let saves: Vec<_> = of(Connmark::Save).filter(|s| s.0.family == family).collect();
        let restores: Vec<_> = of(Connmark::Restore).filter(|s| s.0.family == family).collect();
        if saves.is_empty() || saves.iter().chain(&restores).any(|s| s.3 != 0) {
            continue;
        }
        let kept = saves.iter().fold(0, |all, s| all | s.1);
        let back = restores.iter().fold(0, |all, r| all | r.1 & r.2);
        for (ruled, ctmask, nfmask, _) in restores {
            let (step, save) = (&facts.steps[ruled.step], &facts.steps[saves[0].0.step]);
            if kept & ctmask & nfmask != 0 {
                let Some((filter, mask)) = kept_back(facts, kept, back) else { continue };
                let reason = format!(
                    "Line {} saves the bits {kept:#x}, this puts back {:#x}; the filter of line {} looks at {mask:#x}.",
                    save.line,
                    ctmask & nfmask,
                    facts.steps[filter.step].line
                );
                let word = step.value(&["--mask", "--ctmask"]).unwrap_or("--restore-mark");
                let fix = if step.has("--mask") {
                    step.with("--mask", &format!("{kept:#x}"))
                } else {
                    String::new()
                };
                found.at(
                    ruled.step,
                    word,
                    Say::new("bits of the mark that a filter looks at are not put back", reason, fix),
                );
                break;
            }
            let reason = format!(
                "Line {} saves the bits {kept:#x}; this puts back {:#x}, where nothing was saved.",
                save.line,
                ctmask & nfmask
            );
            let word = step.value(&["--mask", "--ctmask"]).unwrap_or("--restore-mark");
            found.at(ruled.step, word, Say::new("these bits of a mark are never saved", reason, ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_rules() {
        assert_eq!(wanted("0x2"), Some((2, u32::MAX)));
        assert_eq!(wanted("16/0xf0"), Some((16, 0xf0)));
        assert_eq!(wanted("main"), None);
    }
}
