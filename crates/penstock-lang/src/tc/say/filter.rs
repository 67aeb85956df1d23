//! Filters, from the text tc prints of one.

use super::{action, ematch};
use penstock_model::{Kernel, Options};

/// A filter that was shown, in words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    /// Where it hangs, where the text says so: `parent 1:`, `ingress`, `root`, `block 5`.
    pub place: Vec<String>,
    /// The device, where the text says so.
    pub dev: Option<String>,
    /// The protocol's name.
    pub protocol: String,
    /// `pref`.
    pub pref: String,
    /// Chain; 0 where none is named.
    pub chain: u32,
    /// Kind.
    pub kind: String,
    /// The filter's handle.
    pub handle: Option<String>,
    /// The words behind the kind, without actions.
    pub words: Vec<String>,
    /// Each action's words, its kind first.
    pub actions: Vec<Vec<String>>,
    /// A police in the old form.
    pub police: Option<Vec<String>>,
    /// The buckets of a hash table of u32, which is not a filter.
    pub divisor: Option<u32>,
    /// Whether it is a priority's header only.
    pub header: bool,
}

/// A chain that was shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Template {
    /// As in [`Shown`].
    pub place: Vec<String>,
    /// As in [`Shown`].
    pub dev: Option<String>,
    /// Index.
    pub chain: u32,
    /// The kind of its template and the ethertype and words of it.
    pub template: Option<(String, Option<String>, Vec<String>)>,
}

impl Shown {
    /// The command that adds it, `place` being where it hangs (`dev eth0 parent 1:`); with its own handle or without.
    pub fn command(&self, place: &str, handle: bool) -> Vec<String> {
        let mut line = strings(&["tc", "filter", "add"]);
        line.extend(place.split(' ').map(str::to_owned));
        line.extend(strings(&["protocol", &self.protocol, "pref", &self.pref]));
        if self.chain != 0 {
            line.extend(["chain".to_owned(), self.chain.to_string()]);
        }
        if let Some(own) = self.handle.as_ref().filter(|_| handle) {
            line.extend(["handle".to_owned(), own.clone()]);
        }
        line.push(self.kind.clone());
        if let Some(divisor) = self.divisor {
            line.extend(["divisor".to_owned(), divisor.to_string()]);
        }
        let mut words = self.words.as_slice();
        // Where u32 counts by itself the table is its own.
        if let (false, [ht, _, rest @ ..]) = (handle, words)
            && ht == "ht"
        {
            words = rest;
        }
        line.extend_from_slice(words);
        line.extend(self.police.iter().flatten().cloned());
        for action in &self.actions {
            line.push("action".to_owned());
            line.extend(action.iter().cloned());
        }
        line
    }
    /// The hash table that a handle of u32 names.
    pub fn table(&self) -> Option<u32> {
        let table = self.handle.as_ref().filter(|_| self.kind == "u32")?.split(':').next()?;
        u32::from_str_radix(table, 16).ok()
    }
}

impl Template {
    /// The command that adds it, `place` being where it hangs.
    pub fn command(&self, place: &str) -> Vec<String> {
        let mut line = strings(&["tc", "chain", "add"]);
        line.extend(place.split(' ').map(str::to_owned));
        let chain = ["chain".to_owned(), self.chain.to_string()];
        let Some((kind, protocol, keys)) = &self.template else {
            line.extend(chain);
            return line;
        };
        line.extend(protocol.iter().flat_map(|p| ["protocol".to_owned(), p.clone()]));
        line.extend(chain);
        line.push(kind.clone());
        line.extend_from_slice(keys);
        line
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

/// The head both share: place and device; the rest comes back.
fn head<'a>(words: &'a [&'a str], place: &mut Vec<String>, dev: &mut Option<String>) -> &'a [&'a str] {
    let mut rest = words;
    loop {
        rest = match rest {
            ["dev", name, more @ ..] => {
                *dev = Some((*name).to_owned());
                more
            }
            [word @ ("parent" | "block"), value, more @ ..] => {
                *place = strings(&[word, value]);
                more
            }
            [word @ ("root" | "ingress" | "egress"), more @ ..] => {
                *place = strings(&[word]);
                more
            }
            _ => return rest,
        };
    }
}

/// `filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 …` with the lines below it. `options`: the same filter's dump, where it
/// is at hand.
///
/// # Errors
/// What of it no words say.
pub fn filter(text: &str, options: Option<&Options>, kernel: Kernel) -> Result<Shown, String> {
    let text = text.trim();
    let (own, acts, police) = split(text);
    let words: Vec<&str> = own.split_whitespace().collect();
    let mut shown = Shown::default();
    let ["filter", rest @ ..] = words.as_slice() else { return Err("no filter".to_owned()) };
    let mut rest = head(rest, &mut shown.place, &mut shown.dev);
    shown.protocol = "all".to_owned();
    loop {
        rest = match rest {
            ["protocol", name, more @ ..] => {
                shown.protocol = protocol(name);
                more
            }
            ["pref", pref, more @ ..] => {
                shown.pref = (*pref).to_owned();
                more
            }
            _ => break,
        };
    }
    let [kind, rest @ ..] = rest else { return Err("no kind".to_owned()) };
    shown.kind = (*kind).to_owned();
    let rest = match rest {
        ["chain", chain, more @ ..] => {
            shown.chain = chain.parse().map_err(|_| format!("chain {chain}?"))?;
            more
        }
        _ => rest,
    };
    let rest: Vec<&str> = without_counters(rest);
    shown.header = rest.is_empty() && acts.is_empty() && police.is_none();
    let none = Options::new();
    let list = options.unwrap_or(&none).list("action");
    shown.actions = action::several(acts, list, kernel)?;
    if let Some(text) = police {
        let (mut said, index) = action::police(text, options.and_then(|o| o.nested("police")), kernel);
        said.extend(["index".to_owned(), index]);
        shown.police = Some(said);
    }
    if shown.header {
        return Ok(shown);
    }
    if let Some(name) = options.and_then(|o| o.str("bpf_name")) {
        return Err(format!("the program {name} is of a file that the kernel does not name: load it anew"));
    }
    own_words(&rest, own, &mut shown)?;
    if !ematch::is_whole(options.unwrap_or(&none)) {
        return Err("an ematch of bytes that tc does not print whole".to_owned());
    }
    Ok(shown)
}

/// The filter's own text, that of its actions, that of its police in the old form.
fn split(text: &str) -> (&str, &str, Option<&str>) {
    if let Some(at) = text.find("action order ") {
        return (&text[..at], &text[at..], None);
    }
    match text.find("police 0x") {
        Some(at) => (&text[..at], "", Some(&text[at..])),
        None => (text, "", None),
    }
}

/// tc's name of a protocol that has none is a number in brackets.
fn protocol(name: &str) -> String {
    let number = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).and_then(|n| n.parse::<u32>().ok());
    number.map_or_else(|| name.to_owned(), |n| format!("{n:#x}"))
}

/// Takes out `(rule hit 0 success 0)`, `(success 0 )`, and where the filter is.
fn without_counters<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut inside = false;
    for word in words {
        inside |= *word == "(rule" || *word == "(success";
        if !inside && !matches!(*word, "not_in_hw" | "in_hw") {
            kept.push(*word);
        }
        inside &= !word.ends_with(')');
    }
    kept
}

/// The words behind the kind.
fn own_words(rest: &[&str], own: &str, shown: &mut Shown) -> Result<(), String> {
    match shown.kind.as_str() {
        "u32" => return u32_words(rest, shown),
        "flower" => return flower(rest, own, shown),
        _ => {}
    }
    let mut words = Vec::new();
    let mut rest = rest;
    while let [word, more @ ..] = rest {
        let mut used = 2;
        let value = more.first().copied().unwrap_or_default();
        match (shown.kind.as_str(), *word) {
            (_, "handle" | "fh") => shown.handle = Some(value.to_owned()),
            ("fw", "input") => {
                words.extend(["indev".to_owned(), more.get(1).copied().unwrap_or_default().to_owned()]);
                used = 3;
            }
            // Where no class is named tc shows nothing behind the word.
            (_, "flowid" | "classid") if value == "???" => {}
            ("route", "to" | "from") => {
                words.extend(strings(&[word, if value == "cosmos" { "0" } else { value }]))
            }
            ("flow", "perturb") => words.extend(strings(&[word, value.trim_end_matches("sec")])),
            ("flow", "map" | "hash")
            | (_, "skip_hw" | "skip_sw" | "direct-action" | "fall_through" | "pass_on") => {
                words.push((*word).to_owned());
                used = 1;
            }
            ("bpf", "bytecode") => {
                let program = own.split('\'').nth(1).ok_or("bpf without its program")?;
                words.extend(["bytecode".to_owned(), program.to_owned()]);
                used = 2 + more.iter().position(|w| w.ends_with('\'') && w.len() > 1).unwrap_or(0);
            }
            ("rsvp" | "rsvp6", "session" | "sender") => {
                used = 1;
                for w in more.iter().take_while(|w| !matches!(**w, "ipproto" | "tunnelid" | "sender")) {
                    used += usize::from(*w != "NONE");
                    if *w == "NONE" {
                        used += 1;
                        break;
                    }
                }
                let said = &more[..used - 1];
                if said != ["NONE"] {
                    words.push((*word).to_owned());
                    words.extend(
                        said.iter().map(|w| if *w == "[NONE]" { "any".to_owned() } else { (*w).to_owned() }),
                    );
                }
            }
            ("basic" | "cgroup" | "flow", word)
                if word.contains('(') || matches!(word, "NOT" | "AND" | "OR") =>
            {
                words.push("match".to_owned());
                let at = own.find('\n').unwrap_or(own.len());
                // The expression begins on a line of its own.
                words.push(ematch::expression(own.get(at..).unwrap_or_default())?);
                used = rest.len();
            }
            _ => words.extend(strings(&[word, value])),
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    // A match is read to the next word: the class stands behind it.
    if let Some(at) = words.iter().position(|w| w == "match" && shown.kind != "u32") {
        let expression: Vec<String> = words.drain(at..at + 2).collect();
        words.splice(0..0, expression);
        if words.len() == 2 && shown.actions.is_empty() && shown.police.is_none() {
            return Err("a match without a class and an action, which tc does not read".to_owned());
        }
    }
    shown.words = words;
    Ok(())
}

fn after<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().position(|w| *w == name).and_then(|at| words.get(at + 1)).copied()
}

/// `fh 800::800 order 2048 key ht 800 bkt 0 *flowid 1:10 link 2: mark 0x0001 0xffff match 0a000001/ffffffff at 16 offset … hash mask …`.
fn u32_words(rest: &[&str], shown: &mut Shown) -> Result<(), String> {
    let fh = after(rest, "fh").ok_or("u32 without a handle")?;
    shown.handle = Some(fh.to_owned());
    if let Some(divisor) = after(rest, "divisor") {
        shown.divisor = Some(divisor.parse().map_err(|_| format!("divisor {divisor}?"))?);
        return Ok(());
    }
    let mut words = Vec::new();
    if let Some(table) = after(rest, "ht") {
        words.extend(["ht".to_owned(), format!("{table}:{}:", after(rest, "bkt").unwrap_or("0"))]);
    }
    for (i, word) in rest.iter().enumerate() {
        let more = &rest[i + 1..];
        match *word {
            "match" => words.extend(matched(more)?),
            "mark" => {
                let said = strings(&["match", "mark", at(more, 0), at(more, 1)]);
                // Something must stand behind it.
                words.splice(0..0, said);
            }
            "link" => words.extend(strings(&["link", at(more, 0)])),
            "dev" if i > 0 && rest[i - 1] == "input" => words.extend(strings(&["indev", at(more, 0)])),
            "flowid" | "*flowid" if at(more, 0).contains(':') => {
                words.extend(strings(&["flowid", at(more, 0)]))
            }
            "skip_hw" | "skip_sw" => words.push((*word).to_owned()),
            "offset" => words.extend(offset(more)),
            "hash" if at(more, 0) == "mask" => {
                words.extend(strings(&["hashkey", "mask", at(more, 1), "at", at(more, 3)]))
            }
            "eat" if !words.iter().any(|w| w == "eat") => {
                if !words.iter().any(|w| w == "offset") {
                    words.push("offset".to_owned());
                }
                words.push("eat".to_owned());
            }
            _ => {}
        }
    }
    // Of a prefix without bits tc makes no key; without any match it makes no filter.
    if !words.iter().any(|w| w == "match") {
        words.splice(0..0, strings(&["match", "ip6", "src", "::/0"]));
    }
    shown.words = words;
    Ok(())
}

fn at<'a>(words: &[&'a str], i: usize) -> &'a str {
    words.get(i).copied().unwrap_or_default()
}

/// What stands behind `match`, plain or with `-p`.
fn matched(more: &[&str]) -> Result<Vec<String>, String> {
    let said = |words: &[&str]| Ok([&["match"], words].concat().iter().map(|w| (*w).to_owned()).collect());
    match more {
        ["IP", "src" | "dst", address, ..] => said(&["ip", more[1], address]),
        ["IP", field @ ("ihl" | "dsfield" | "protocol"), value, ..] => {
            said(&["ip", field, value, if *field == "ihl" { "0x0f" } else { "0xff" }])
        }
        [port @ ("sport" | "dport"), value, ..] => said(&["ip", port, value.trim_end_matches(','), "0xffff"]),
        [pair, "at", place, ..] => {
            let (value, mask) = pair.split_once('/').ok_or_else(|| format!("match {pair}?"))?;
            said(&["u32", &format!("0x{value}"), &format!("0x{mask}"), "at", place])
        }
        _ => Err(format!("match {}?", more.join(" "))),
    }
}

/// `0f00>>6 at 0 plus 4 eat`.
fn offset(more: &[&str]) -> Vec<String> {
    let mut words = vec!["offset".to_owned()];
    let mut more = more;
    if let [first, rest @ ..] = more
        && let Some((mask, shift)) = first.split_once(">>")
    {
        words.extend(["mask", mask, "shift", shift].map(str::to_owned));
        more = rest;
    }
    for name in ["at", "plus"] {
        if let [word, value, rest @ ..] = more
            && *word == name
        {
            words.extend(strings(&[word, value]));
            more = rest;
        }
    }
    if words.len() == 1 {
        words.extend(["plus", "0"].map(str::to_owned));
    }
    if more.first() == Some(&"eat") {
        words.push("eat".to_owned());
    }
    words
}

/// Keys stand as they are read, but for a few names.
fn flower(rest: &[&str], own: &str, shown: &mut Shown) -> Result<(), String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = rest;
    while let [word, more @ ..] = rest {
        let mut used = 2;
        let value = at(more, 0);
        match *word {
            "handle" => shown.handle = Some(value.to_owned()),
            // The protocol of the filter says it.
            "eth_type" => {}
            "skip_hw" | "skip_sw" | "verbose" => {
                words.push((*word).to_owned());
                used = 1;
            }
            "icmp_type" => words.extend(strings(&["type", value])),
            "icmp_code" => words.extend(strings(&["code", value])),
            "mpls" => {
                words.push("mpls".to_owned());
                used = 1;
            }
            "lse" | "cfm" => {
                words.push((*word).to_owned());
                used = 1;
            }
            "spi" => words.extend(strings(&["spi", value.trim_start_matches("0x")])),
            "vlan_ethtype" | "cvlan_ethtype" => words.extend([(*word).to_owned(), protocol(value)]),
            "ppp_proto" => words.extend([(*word).to_owned(), value.trim_matches(['[', ']']).to_owned()]),
            "ip_proto" => words.extend(strings(&["ip_proto", value])),
            _ => words.extend(strings(&[word, value])),
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    // A key that stands on another's word comes behind it; the parts of a tag before what they hold.
    let place = |w: &str| match w {
        "num_of_vlans" => 0,
        "vlan_id" | "vlan_prio" => 1,
        "vlan_ethtype" => 2,
        "cvlan_id" | "cvlan_prio" => 3,
        "cvlan_ethtype" | "ppp_proto" => 4,
        "ip_proto" => 5,
        _ => 6,
    };
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut rest = words.as_slice();
    while let [word, more @ ..] = rest {
        let alone = matches!(word.as_str(), "skip_hw" | "skip_sw" | "verbose");
        let nested = matches!(word.as_str(), "mpls" | "cfm" | "lse");
        let len = if alone {
            1
        } else if nested {
            let inner =
                |w: &str| matches!(w, "lse" | "depth" | "label" | "tc" | "bos" | "ttl" | "mdl" | "op");
            let mut len = 1;
            while more.get(len - 1).is_some_and(|w| inner(w)) {
                len += if more[len - 1] == "lse" { 1 } else { 2 };
            }
            len
        } else {
            2
        };
        groups.push(rest[..len.min(rest.len())].to_vec());
        rest = rest.get(len..).unwrap_or_default();
    }
    groups.sort_by_key(|g| place(&g[0]));
    shown.words = groups.concat();
    if own.contains("enc_opts") {
        return Err("options of a tunnel that tc does not name".to_owned());
    }
    Ok(())
}

/// `chain parent ffff: flower chain 5 …`.
///
/// # Errors
/// What of it no words say.
pub fn template(text: &str) -> Result<Template, String> {
    let mut shown = Template::default();
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["chain", rest @ ..] = words.as_slice() else { return Err("no chain".to_owned()) };
    let rest = head(rest, &mut shown.place, &mut shown.dev);
    let (kind, rest) = match rest {
        ["chain", ..] => (None, rest),
        [kind, rest @ ..] => (Some(*kind), rest),
        [] => (None, rest),
    };
    let rest = match rest {
        ["chain", chain, more @ ..] => {
            shown.chain = chain.parse().map_err(|_| format!("chain {chain}?"))?;
            more
        }
        _ => rest,
    };
    if let Some(kind) = kind {
        let mut filter = Shown { kind: kind.to_owned(), ..Shown::default() };
        let protocol = after(rest, "eth_type").map(|name| match name {
            "ipv4" => "ip".to_owned(),
            "ipv6" | "arp" | "rarp" => name.to_owned(),
            number => format!("0x{number}"),
        });
        flower(rest, text, &mut filter)?;
        shown.template = Some((kind.to_owned(), protocol, filter.words));
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, handle: Option<&str>, words: &str) {
        let shown = filter(text, None, Kernel::V6_12).unwrap();
        assert_eq!((shown.handle.as_deref(), shown.words.join(" ").as_str()), (handle, words));
    }

    #[test]
    fn filters_of_each_kind() {
        check(
            "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 1:10 not_in_hw \n  match 0a000001/ffffffff at 16\n    offset 0f00>>6 at 0  eat \n",
            Some("800::800"),
            "ht 800:0: flowid 1:10 match u32 0x0a000001 0xffffffff at 16 offset mask 0f00 shift 6 at 0 eat",
        );
        check(
            "filter protocol ip pref 2 fw chain 0 handle 0x1/0xff classid 1:1 input dev d0 \n",
            Some("0x1/0xff"),
            "classid 1:1 indev d0",
        );
        check(
            "filter protocol all pref 3 basic chain 0 handle 0x1 flowid 1:2 \n  cmp(u8 at 9 layer 1 eq 6)\n",
            Some("0x1"),
            "match cmp(u8 at 9 layer 1 eq 6) flowid 1:2",
        );
        check(
            "filter protocol ip pref 4 flower chain 2 handle 0x1 classid 1:1 \n  eth_type ipv4\n  dst_port 80\n  ip_proto tcp\n  not_in_hw\n",
            Some("0x1"),
            "ip_proto tcp classid 1:1 dst_port 80",
        );
        check(
            "filter protocol ip pref 5 bpf chain 0 handle 0x1 flowid 1:1 direct-action not_in_hw bytecode '1,6 0 0 5'\n",
            Some("0x1"),
            "flowid 1:1 direct-action bytecode 1,6 0 0 5",
        );
        check(
            "filter protocol [4660] pref 6 flow chain 0 handle 0x1 hash keys src,dst divisor 64 baseclass 1:1 perturb 10sec \n",
            Some("0x1"),
            "hash keys src,dst divisor 64 baseclass 1:1 perturb 10",
        );
        assert_eq!(
            filter("filter protocol [4660] pref 6 flow chain 0 \n", None, Kernel::V6_12).unwrap().protocol,
            "0x1234"
        );
        assert!(filter("filter protocol ip pref 1 u32 chain 0 \n", None, Kernel::V6_12).unwrap().header);
    }

    #[test]
    fn a_chain_with_its_template() {
        let chain =
            template("chain parent ffff: flower chain 5 \n  dst_mac ff:ff:ff:ff:ff:ff\n  eth_type ipv4\n")
                .unwrap();
        assert_eq!(chain.chain, 5);
        let (kind, protocol, words) = chain.template.unwrap();
        assert_eq!(
            (kind.as_str(), protocol.as_deref(), words.join(" ").as_str()),
            ("flower", Some("ip"), "dst_mac ff:ff:ff:ff:ff:ff")
        );
    }
}
