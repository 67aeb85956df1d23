//! `tc filter show` back to commands: u32, fw and matchall with the actions that redirect, drop and pass. Others are noted.

use super::Made;

/// Adds the filters of a device from the text tc printed.
pub(super) fn import(dev: &str, text: &str, made: &mut Made) {
    made.device(dev);
    for object in super::objects(text, "filter ") {
        let words: Vec<&str> = object.split_whitespace().collect();
        match command(dev, &words) {
            Ok(Some(line)) => made.give(&line),
            // A header of a priority: its filters follow.
            Ok(None) => {}
            Err(why) => made.note(format!("{object}: {why}")),
        }
    }
}

fn after<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().position(|w| *w == name).and_then(|at| words.get(at + 1)).copied()
}

fn command(dev: &str, words: &[&str]) -> Result<Option<String>, String> {
    let (protocol, pref) = (after(words, "protocol").unwrap_or("all"), after(words, "pref").unwrap_or("1"));
    let at = words.iter().position(|w| *w == "pref").ok_or("no pref")?;
    let kind = words.get(at + 2).copied().unwrap_or_default();
    let rest = words.get(at + 3..).unwrap_or_default();
    let place = match after(words, "parent") {
        Some(parent) => format!("parent {parent}"),
        None if words.contains(&"ingress") => "ingress".to_owned(),
        None if words.contains(&"egress") => "egress".to_owned(),
        None => "root".to_owned(),
    };
    let chain = after(rest, "chain").filter(|c| *c != "0").map(|c| format!(" chain {c}")).unwrap_or_default();
    let start = format!("tc filter add dev {dev} {place} protocol {protocol} pref {pref}{chain}");
    let flow =
        after(rest, "flowid").or(after(rest, "*flowid")).or(after(rest, "classid")).filter(|f| *f != "???");
    let flow = flow.map(|f| format!(" flowid {f}")).unwrap_or_default();
    let action = actions(rest)?;
    let handle = |name: &str| after(rest, name).map(|h| format!(" handle {h}")).unwrap_or_default();
    match kind {
        "u32" => {
            let Some(fh) = after(rest, "fh") else { return Ok(None) };
            if let Some(divisor) = after(rest, "divisor") {
                // The root table of a priority makes itself.
                return Ok((!fh.starts_with('8') || fh.len() < 4)
                    .then(|| format!("{start} handle {fh} u32 divisor {divisor}")));
            }
            let mut line = format!("{start} u32");
            if let Some(table) = after(rest, "ht").filter(|t| t.len() < 3) {
                line.push_str(&format!(
                    " ht {table}:{}",
                    after(rest, "bkt").map(|b| format!("{b}:")).unwrap_or_default()
                ));
            }
            for (i, word) in rest.iter().enumerate().filter(|(_, w)| **w == "match") {
                let (value, mask) =
                    rest.get(i + 1).and_then(|m| m.split_once('/')).ok_or(format!("{word} what?"))?;
                let at = after(&rest[i..], "at").unwrap_or("0");
                line.push_str(&format!(" match u32 0x{value} 0x{mask} at {at}"));
            }
            if let Some(link) = after(rest, "link") {
                line.push_str(&format!(" link {link}"));
            }
            Ok(Some(line + &flow + &action))
        }
        "fw" => Ok(after(rest, "handle").map(|_| format!("{start}{} fw{flow}{action}", handle("handle")))),
        "matchall" => {
            Ok(after(rest, "handle").map(|_| format!("{start}{} matchall{flow}{action}", handle("handle"))))
        }
        other => Err(format!("filters of the kind {other} are not imported")),
    }
}

/// `action order 1: mirred (Egress Redirect to device ifb0) stolen …`.
fn actions(words: &[&str]) -> Result<String, String> {
    let mut all = String::new();
    let starts: Vec<usize> =
        (0..words.len()).filter(|&i| words[i] == "order" && i > 0 && words[i - 1] == "action").collect();
    for at in starts {
        let kind = words.get(at + 2).copied().unwrap_or_default();
        let rest = words.get(at + 3..).unwrap_or_default();
        match kind {
            "mirred" => {
                let text = rest.join(" ").to_lowercase();
                let direction = if text.starts_with("(ingress") { "ingress" } else { "egress" };
                let what = if text.contains("redirect") { "redirect" } else { "mirror" };
                let device =
                    after(rest, "device").map(|d| d.trim_end_matches(')')).ok_or("mirred to no device")?;
                all.push_str(&format!(" action mirred {direction} {what} dev {device}"));
            }
            "gact" => {
                let verdict = after(rest, "action").ok_or("gact without a verdict")?;
                all.push_str(&format!(" action {verdict}"));
            }
            other => return Err(format!("actions of the kind {other} are not imported")),
        }
    }
    if all.is_empty() && words.contains(&"police") {
        return Err("police of filters is not imported".to_owned());
    }
    Ok(all)
}
