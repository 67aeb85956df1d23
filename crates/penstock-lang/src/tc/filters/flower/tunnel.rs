//! Options of tunnels: `geneve_opts`, `vxlan_opts`, `erspan_opts`, `gtp_opts`, `pfcp_opts`.
//!
//! They travel as `enc_opts` and `enc_opts_mask`: a list of options, each with its `type` (the tunnel's name).
//!
//! Follows: iproute2 6.1.0 `tc/f_flower.c` `flower_parse_enc_opts_*`, `flower_print_*_opts`; `pfcp_opts` of 6.12.

use super::value::{halves, number, pairs};
use crate::show::Out;
use crate::tc::num;
use penstock_model::{Options, Value};

/// What tc says before its refusal; often nothing.
type Read<T> = Result<T, String>;

fn none<T>() -> Read<T> {
    Err(String::new())
}

/// The parts of one option between colons; empty ones are left out.
fn parts(text: &str, of: &str, fields: &[(&'static str, u32, u32)]) -> Read<Options> {
    let mut o = Options::new();
    for (i, token) in text.split(':').enumerate() {
        let Some(&(name, base, max)) = fields.get(i) else {
            return Err(format!("Unknown \"{of}\" type\n"));
        };
        if token.is_empty() {
            continue;
        }
        let value = number(token, base, max).ok_or(String::new())?;
        o.set(name, value.into());
    }
    Ok(o)
}

fn geneve_one(text: &str) -> Read<Options> {
    let (numbers, data) = match text.match_indices(':').nth(1) {
        Some((at, _)) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut o = parts(numbers, "geneve_opts", &[("class", 16, 0xffff), ("kind", 16, 0xff)])?;
    if let Some(data) = data {
        let (data, more) = data.split_once(':').map_or((data, false), |(data, _)| (data, true));
        if !data.is_empty() {
            o.set("data", Value::Bytes(pairs(data).ok_or(String::new())?));
        }
        if more {
            return Err("Unknown \"geneve_opts\" type\n".to_owned());
        }
    }
    Ok(o)
}

/// Keys and masks of `geneve_opts`. A key is whole; a mask that is not given is all ones.
fn geneve(text: &str) -> Read<(Vec<Options>, Vec<Options>)> {
    let (mut keys, mut masks) = (Vec::new(), Vec::new());
    for token in text.split(',') {
        let (key, mask) = halves(token);
        let fields: Vec<&str> = key.split(':').collect();
        if fields.len() != 3 || fields.iter().any(|f| f.is_empty()) {
            return none();
        }
        keys.push(key.to_owned());
        masks.push(match mask {
            Some(mask) => mask.to_owned(),
            None => format!("ffff:ff:{}", "f".repeat(fields[2].len())),
        });
    }
    let keys = keys.iter().map(|k| geneve_one(k)).collect::<Read<_>>()?;
    // A mask may hold several of its own between commas: they were joined.
    let masks = masks.iter().map(|m| geneve_one(m)).collect::<Read<_>>()?;
    Ok((keys, masks))
}

/// Reads the value of one of the words: keys and masks.
pub fn parse(word: &str, text: &str) -> Read<(&'static str, Vec<Options>, Vec<Options>)> {
    let one = |key: Options, mask: Options| (vec![key], vec![mask]);
    let (key, mask) = halves(text);
    let (of, (keys, masks)) = match word {
        "geneve_opts" => ("geneve", geneve(text)?),
        "vxlan_opts" => {
            let read =
                |t: &str| num::u32(t, 0).map(|gbp| Options::new().with("gbp", gbp)).ok_or(String::new());
            ("vxlan", one(read(key)?, read(mask.unwrap_or("0xffffffff"))?))
        }
        "erspan_opts" => {
            let fields = [("ver", 0, 0xff), ("index", 0, u32::MAX), ("dir", 0, 0xff), ("hwid", 0, 0xff)];
            let read = |t: &str| parts(t, "geneve_opts", &fields);
            let mask = match (mask, key.split_once(':')) {
                (Some(mask), _) => mask.to_owned(),
                (None, Some((ver, _))) => format!("{ver}:0xffffffff:0xff:0xff"),
                (None, None) => return none(),
            };
            ("erspan", one(read(key)?, read(&mask)?))
        }
        "gtp_opts" => {
            let read = |t: &str| {
                // What follows the second part is not looked at.
                let end = t.match_indices(':').nth(1).map_or(t.len(), |(at, _)| at);
                if !t.contains(':') {
                    return none();
                }
                parts(&t[..end], "gtp_opts", &[("pdu_type", 16, 0xff), ("qfi", 16, 0xff)])
            };
            ("gtp", one(read(key)?, read(mask.unwrap_or("ff:ff"))?))
        }
        _ => {
            let read = |t: &str| {
                let (kind, seid) = halves_at(t);
                let mut o = parts(kind, "pfcp_opts", &[("kind", 16, 0xff)])?;
                if let Some(seid) = seid.filter(|s| !s.is_empty()) {
                    if seid.contains(':') {
                        return Err("Unknown \"pfcp_opts\" type\n".to_owned());
                    }
                    let (n, rest) = num::strtoul(seid, 16).ok_or(String::new())?;
                    if !rest.is_empty() {
                        return none();
                    }
                    o.set("seid", n.into());
                }
                Ok(o)
            };
            ("pfcp", one(read(key)?, read(mask.unwrap_or("ff:ffffffffffffffff"))?))
        }
    };
    Ok((of, keys, masks))
}

fn halves_at(text: &str) -> (&str, Option<&str>) {
    text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)))
}

/// Prints the options of a tunnel as keys with their masks, and in JSON each as an array.
pub fn print(o: &Options, out: &mut Out) {
    let Some(of) = o.str("enc_opts_type") else { return };
    let (keys, masks) = (o.list("enc_opts"), o.list("enc_opts_mask"));
    let json = match of {
        "geneve" => ("geneve_opt_key", "geneve_opt_mask"),
        "vxlan" => ("vxlan_opt_key", "vxlan_opt_mask"),
        "erspan" => ("erspan_opt_key", "erspan_opt_mask"),
        "gtp" => ("gtp_opt_key", "gtp_opt_mask"),
        _ => ("pfcp_opt_key", "pfcp_opt_mask"),
    };
    if out.is_json() {
        // tc has no JSON for gtp.
        if of != "gtp" {
            print_json(of, json.0, keys, out);
            print_json(of, json.1, masks, out);
        }
        return;
    }
    let pairs: Vec<String> =
        keys.iter().zip(masks).map(|(k, m)| format!("{}/{}", text(of, k), text(of, m))).collect();
    out.nl();
    out.text_only(format_args!("  {of}_opts {}", pairs.join(",")));
}

fn text(of: &str, o: &Options) -> String {
    let n = |name| o.u32(name).unwrap_or(0);
    match of {
        "geneve" => {
            let data: String =
                o.bytes("data").unwrap_or_default().iter().map(|b| format!("{b:02x}")).collect();
            format!("{:04x}:{:02x}:{data}", n("class"), n("kind"))
        }
        "vxlan" => n("gbp").to_string(),
        "erspan" => format!("{}:{}:{}:{}", n("ver"), n("index"), n("dir"), n("hwid")),
        "gtp" => format!("{:02x}:{:02x}", n("pdu_type"), n("qfi")),
        _ => format!("{:02x}:{:x}", n("kind"), o.u64("seid").unwrap_or(0)),
    }
}

fn print_json(of: &str, name: &str, list: &[Options], out: &mut Out) {
    out.open_array(name, "");
    for o in list {
        let n = |name| o.u64(name).unwrap_or(0);
        out.open_object(None);
        let fields: &[(&str, &str)] = match of {
            "geneve" => &[("class", "class"), ("type", "kind")],
            "vxlan" => &[("gbp", "gbp")],
            "erspan" => &[("ver", "ver"), ("index", "index"), ("dir", "dir"), ("hwid", "hwid")],
            _ => &[("type", "kind"), ("seid", "seid")],
        };
        for (key, field) in fields {
            out.json_num(key, n(field));
        }
        if of == "geneve" {
            out.open_array("data", "");
            for byte in o.bytes("data").unwrap_or_default() {
                out.item(byte, format_args!(""));
            }
            out.close_array();
        }
        out.close_object();
    }
    out.close_array();
}
