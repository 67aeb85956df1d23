//! PS301 to PS304, PS310 to PS312: actions of filters, and where they send packets.

use crate::facts::Facts;
use crate::finding::{Found, Rule, Say};
use penstock_sched::act;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS301",
        "conform-exceed names the action for too much first",
        "`conform-exceed A/B` does A with what exceeds the rate and B with what conforms, against the order of its own name (`get_police_result` of m_police.c). \
         `pass/drop` lets the excess through and drops the rest. The manual page was corrected for it: \
         https://www.mail-archive.com/netdev@vger.kernel.org/msg125254.html, https://manpages.ubuntu.com/manpages/noble/man8/tc-police.8.html.",
        reversed,
    ),
    Rule::warning(
        "PS302",
        "an action behind one that ends the list",
        "Actions of a filter are carried out in their order until one says anything but `pipe` (`tcf_action_exec`). A redirect takes the packet away, pass and drop decide; \
         what stands behind them is never done. Put the redirect last. tc-actions(8): https://man7.org/linux/man-pages/man8/tc-actions.8.html.",
        behind,
    ),
    Rule::warning(
        "PS303",
        "packets are redirected to an ifb that has no qdisc of its own",
        "An ifb hands on what comes to it. Only a qdisc on it shapes, and the one it has by itself does not. Put the shaper on the ifb's root. The article by tc's \
         documenter shows the order of steps: http://linux-ip.net/gl/tc-filters/tc-filters-node3.html.",
        bare_ifb,
    ),
    Rule::warning(
        "PS304",
        "packets that leave are redirected to the device they leave by",
        "The packet comes to the same qdisc and the same filter again. Linux before 6.9 locks up, later ones drop it (`tcf_mirred_act`, `mirred_nest_level`): \
         https://github.com/multipath-tcp/mptcp_net-next/issues/451.",
        to_itself,
    ),
];

/// Those of later numbers.
pub const LATER: &[Rule] = &[
    Rule::warning(
        "PS310",
        "packets are redirected to the ingress side of an ifb",
        "`mirred ingress redirect` hands the packet to the other device as if it had come in by it: to its ingress filters, then to IP. The qdisc at the root of an ifb \
         is on its egress side and never sees it. Write `mirred egress redirect` (`tcf_mirred_forward`). tc-mirred(8): \
         https://man7.org/linux/man-pages/man8/tc-mirred.8.html.",
        wrong_side,
    ),
    Rule::warning(
        "PS311",
        "what comes in by a device is sent out by it again",
        "The frame goes back to where it came from, and the machine never sees it. To shape what comes in, redirect it to an ifb and put the qdisc there.",
        sent_back,
    ),
    Rule::warning(
        "PS312",
        "a header is changed and its checksum is not",
        "pedit changes bytes and nothing else (`tcf_pedit_act`): the checksum of the IPv4 header stays what it was, and who receives the packet drops it (`ip_rcv_core`). \
         `pipe action csum ip4h` behind it makes it anew; with another address those of TCP and UDP too (`csum ip4h and tcp and udp`). tc-csum(8): \
         https://man7.org/linux/man-pages/man8/tc-csum.8.html.",
        unsummed,
    ),
];

/// Fields of the IPv4 header that pedit has a name for.
const FIELDS: [&str; 8] = ["ttl", "tos", "dsfield", "precedence", "src", "dst", "protocol", "hdrlen"];

fn unsummed(facts: &Facts, found: &mut Found) {
    for filter in facts.devices.iter().flat_map(|d| &d.filters) {
        let kinds: Vec<&str> = filter.actions().map(|a| a.0).collect();
        let Some(at) = kinds.iter().rposition(|k| *k == "pedit") else { continue };
        let step = &facts.steps[filter.step];
        let changes = step
            .words
            .windows(3)
            .find(|w| w[0] == "munge" && w[1] == "ip" && FIELDS.contains(&w[2].as_str()));
        let Some(field) = changes.map(|w| w[2].as_str()) else { continue };
        if let Some(lacks) = matches!(field, "src" | "dst").then(|| transport_left_out(&step.words)).flatten()
        {
            let reason = format!(
                "The pseudo-header of {lacks}'s checksum has the addresses in it (RFC 9293, RFC 768): the receiver drops such packets."
            );
            let fix = step.text().replace("csum ip4h", &format!("csum ip4h and {lacks}"));
            found.at(
                filter.step,
                "csum",
                Say::new(format!("the checksum of {lacks} is not made anew"), reason, fix),
            );
            continue;
        }
        // What comes behind in another filter, or in a program, nobody sees here; hardware makes them anew by itself.
        let elsewhere = kinds[at..].iter().any(|k| matches!(*k, "csum" | "bpf" | "nat"))
            || step.has("skip_sw")
            || step.has("jump")
            || step.has("goto")
            || facts.steps.iter().any(|s| s.has("csum") && s.value(&["dev"]) == step.value(&["dev"]));
        if elsewhere {
            continue;
        }
        let sums = if matches!(field, "src" | "dst") { "ip4h and tcp and udp" } else { "ip4h" };
        let last = step.words.last().map_or("", String::as_str);
        let fix = match last {
            _ if at + 1 != kinds.len() => String::new(),
            "pipe" => format!("{} action csum {sums}", step.text()),
            "pass" | "ok" | "continue" | "reclassify" => {
                format!("{} pipe action csum {sums} {last}", step.text().trim_end_matches(last).trim_end())
            }
            _ => format!("{} pipe action csum {sums}", step.text()),
        };
        let reason =
            format!("The header's checksum is that of the old {field}; the next host drops such packets.");
        found.at(filter.step, "munge", Say::new("the checksum is not made anew", reason, fix));
    }
}

/// Of TCP and UDP the one that a filter is for and whose sum its `csum` leaves out.
fn transport_left_out(words: &[String]) -> Option<&'static str> {
    let at = words.iter().rposition(|w| w == "csum")?;
    let summed: Vec<&str> =
        words[at + 1..].iter().map(String::as_str).take_while(|w| *w != "action").collect();
    let asks = |name: &str, number: &str| {
        words[..at]
            .windows(2)
            .any(|w| w[0] == "ip_proto" && w[1] == name || w[0] == "protocol" && w[1] == number)
    };
    [("tcp", "6"), ("udp", "17")]
        .into_iter()
        .find(|(name, number)| asks(name, number) && !summed.contains(name))
        .map(|(name, _)| name)
}

fn reversed(facts: &Facts, found: &mut Found) {
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.ok() && s.1.program() == "tc") {
        let Some(word) = step.value(&["conform-exceed"]) else { continue };
        let Some((exceed, conform)) = word.split_once('/') else { continue };
        let lets = matches!(exceed, "pass" | "ok" | "pipe" | "continue");
        if lets && matches!(conform, "drop" | "shot") {
            let reason =
                format!("What exceeds the rate is let through (`{exceed}`), what conforms is dropped.");
            let fix = step.with("conform-exceed", &format!("{conform}/{exceed}"));
            found.at(at, word, Say::new("this policer drops what conforms", reason, fix));
        }
    }
}

fn behind(facts: &Facts, found: &mut Found) {
    for filter in facts.devices.iter().flat_map(|d| &d.filters) {
        let all: Vec<(&str, i64)> = filter
            .actions()
            .map(|(kind, o)| (kind, o.i64("action").unwrap_or(i64::from(act::PIPE))))
            .collect();
        let ends = |(kind, control): &(&str, i64)| {
            let ends = [act::OK, act::RECLASSIFY, act::SHOT, act::STOLEN, act::QUEUED, act::TRAP];
            // A policer's two answers may differ.
            *kind != "police" && ends.iter().any(|e| i64::from(*e) == *control)
        };
        let Some(at) = all.iter().position(ends).filter(|at| at + 1 < all.len()) else { continue };
        // `random` decides otherwise now and then.
        let step = &facts.steps[filter.step];
        if step.has("random") || step.has("jump") {
            continue;
        }
        let (first, next) = (all[at].0, all[at + 1].0);
        let reason = match first {
            "mirred" => format!("Behind the redirect the packet is gone; `{next}` is not asked."),
            "gact" => format!("Behind pass or drop the packet is gone; `{next}` is not asked."),
            // Of these tc says `pass` by itself where no word stands behind them (m_csum.c, m_nat.c, m_pedit.c).
            _ => format!(
                "`{first}` ends the list with what it says of the packet, and `{next}` is not asked; with `pipe` behind `{first}` it is."
            ),
        };
        let word = if step.has(next) { next } else { "action" };
        found.at(filter.step, word, Say::new(format!("the action {next} is never carried out"), reason, ""));
    }
}

/// Where a filter's packets are redirected to.
fn redirected(step: &crate::facts::Step) -> Option<&str> {
    let at = step.words.iter().position(|w| w == "redirect")?;
    let dev = step.words[at..].iter().position(|w| w == "dev")? + at + 1;
    step.words.get(dev).map(String::as_str)
}

fn bare_ifb(facts: &Facts, found: &mut Found) {
    for filter in facts.devices.iter().flat_map(|d| &d.filters) {
        let step = &facts.steps[filter.step];
        let Some(to) = redirected(step).filter(|to| to.starts_with("ifb")) else { continue };
        let shaped = facts.devices.iter().any(|d| d.name == to && d.qdiscs.iter().any(|q| q.step.is_some()));
        // Who only feeds it may leave the rest to another script.
        let made = facts
            .steps
            .iter()
            .any(|s| s.ok() && s.has(to) && s.program() == "ip" && (s.has("add") || s.has("up")));
        let names = facts.steps.iter().any(|s| s.program() == "tc" && s.has("qdisc") && s.has(to));
        if shaped || !made || names || filter.actions().any(|a| a.0 == "police") {
            continue;
        }
        let reason = format!("No command puts a qdisc on {to}; packets go through it as they come.");
        let fix = format!("tc qdisc add dev {to} root fq_codel");
        found.at(filter.step, to, Say::new(format!("{to} shapes nothing"), reason, fix));
    }
}

fn to_itself(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        for filter in
            device.filters.iter().filter(|f| f.parent.major() != 0xffff || f.parent.minor() == 0xfff3)
        {
            let step = &facts.steps[filter.step];
            if redirected(step) == Some(device.name.as_str()) && step.has("egress") && device.kind != "ifb" {
                let reason = format!("It comes to {} again, and to this filter.", device.name);
                found.at(
                    filter.step,
                    "redirect",
                    Say::new(
                        format!("packets that leave by {} are sent to it again", device.name),
                        reason,
                        "",
                    ),
                );
            }
        }
    }
}

/// Whether a filter stands where packets come in.
fn at_ingress(filter: &crate::filters::Filter) -> bool {
    filter.parent.major() == 0xffff && filter.parent.minor() != 0xfff3
}

fn wrong_side(facts: &Facts, found: &mut Found) {
    for filter in facts.devices.iter().flat_map(|d| &d.filters) {
        let step = &facts.steps[filter.step];
        let Some(to) = redirected(step) else { continue };
        let ifb = |d: &&crate::facts::Device| d.name == to && (d.kind == "ifb" || to.starts_with("ifb"));
        let Some(device) = facts.devices.iter().rfind(ifb) else { continue };
        let Some(side) = step.words.iter().position(|w| w == "redirect").and_then(|at| at.checked_sub(1))
        else {
            continue;
        };
        if step.words[side] != "ingress" || device.root().is_none() || device.ingress().is_some() {
            continue;
        }
        let mut words = step.words.clone();
        "egress".clone_into(&mut words[side]);
        let reason = format!("The qdisc of {to} stands on its egress side; these packets come in by {to}.");
        found.at(
            filter.step,
            "redirect",
            Say::new(format!("the qdisc of {to} never sees these packets"), reason, words.join(" ")),
        );
    }
}

fn sent_back(facts: &Facts, found: &mut Found) {
    for device in facts.devices.iter().filter(|d| d.kind != "ifb") {
        for filter in device.filters.iter().filter(|f| at_ingress(f)) {
            let step = &facts.steps[filter.step];
            let copied = super::ingress::copied(step) == Some(device.name.as_str());
            if !copied && redirected(step) != Some(device.name.as_str()) || !step.has("egress") {
                continue;
            }
            let what = if copied { "A copy of it" } else { "It" };
            let reason = format!("{what} is sent out of {} to whoever sent it.", device.name);
            let say = Say::new(format!("what comes in by {} goes back out by it", device.name), reason, "");
            found.at(filter.step, if copied { "mirror" } else { "redirect" }, say);
        }
    }
}
