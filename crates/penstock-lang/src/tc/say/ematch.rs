//! Expressions of ematches, from the text tc prints: `NOT cmp(u8 at 9 layer 1 eq 6) AND …`.

use penstock_model::{Options, Value};

/// The expression as tc reads it, in one word.
///
/// # Errors
/// What cannot be said.
pub fn expression(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let word = |word: &str| rest.strip_prefix(word);
        if let Some(after) = word("NOT ") {
            out.push_str("not ");
            rest = after;
        } else if let Some(after) = word("AND ") {
            out.push_str(" and ");
            rest = after;
        } else if let Some(after) = word("OR ") {
            out.push_str(" or ");
            rest = after;
        } else if rest.starts_with(['(', ')']) {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        } else {
            let open = rest.find('(').ok_or_else(|| format!("an ematch that cannot be read: {rest}"))?;
            let close =
                end(&rest[open..]).ok_or_else(|| format!("an ematch without its end: {rest}"))? + open;
            out.push_str(&one(rest[..open].trim(), &rest[open + 1..close])?);
            rest = &rest[close + 1..];
        }
        rest = rest.trim_start();
    }
    Ok(out)
}

/// Where the bracket that `text` begins with is closed; within quotes none counts.
fn end(text: &str) -> Option<usize> {
    let (mut depth, mut quoted) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn one(kind: &str, inner: &str) -> Result<String, String> {
    match kind {
        "u32" => {
            let (value, place) = inner.split_once(" at ").ok_or("u32 without a place")?;
            let (value, mask) = value.split_once('/').ok_or("u32 without a mask")?;
            Ok(format!("u32(u32 0x{value} 0x{mask} at {place})"))
        }
        "nbyte" => {
            let (hex, rest) = inner.split_once('"').ok_or("nbyte without its bytes")?;
            let place = rest.rsplit_once('"').ok_or("nbyte without its bytes")?.1;
            let bytes = hex.split_whitespace().map(|h| u8::from_str_radix(h, 16).map_err(|e| e.to_string()));
            Ok(format!("nbyte({}{place})", text(&bytes.collect::<Result<Vec<_>, _>>()?)))
        }
        "meta" => Ok(format!("meta({})", meta(inner))),
        "ipt" => {
            let (name, args) = inner.trim().split_once(" match").ok_or("ipt without a match")?;
            Ok(format!("ipt(-m {name}{args})"))
        }
        _ => Ok(format!("{kind}({inner})")),
    }
}

/// Bytes as a quoted word with octal escapes, of which the reader takes three digits.
fn text(bytes: &[u8]) -> String {
    let one = |&b: &u8| match b {
        b'"' | b'\\' => format!("\\{b:03o}"),
        0x20..0x7f => char::from(b).to_string(),
        _ => format!("\\{b:03o}"),
    };
    format!("\"{}\"", bytes.iter().map(one).collect::<String>())
}

/// `dev eq eth0`: a name that is not a number and no word of the table stands in quotes.
fn meta(inner: &str) -> String {
    let words: Vec<&str> = inner.split(' ').collect();
    let var = words.iter().any(|w| matches!(*w, "dev" | "sk_bind_if"));
    let Some(at) = words.iter().position(|w| matches!(*w, "eq" | "lt" | "gt")).filter(|_| var) else {
        return inner.to_owned();
    };
    let side = |side: &[&str]| {
        let said = side.join(" ");
        let plain = side.first().is_some_and(|w| {
            matches!(*w, "dev" | "sk_bind_if")
                || w.parse::<i64>().is_ok()
                || side.len() > 1 && side[1] == "mask"
        });
        if plain || said.starts_with('"') { said } else { format!("\"{said}\"") }
    };
    format!("{} {} {}", side(&words[..at]), words[at], side(&words[at + 1..]))
}

/// Whether what the text shows of these options is all there is: bytes that cannot be printed are.
pub fn is_whole(o: &Options) -> bool {
    let binary = |side: &str, em: &Options| matches!(em.nested(side).and_then(|s| s.value("value")), Some(Value::Bytes(b)) if b.iter().any(|c| !(0x20..0x7f).contains(c)));
    !o.list("ematches").iter().any(|em| binary("left", em) || binary("right", em))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let check = |text: &str, want: &str| assert_eq!(expression(text).unwrap(), want);
        check(
            "\n  NOT (\n    cmp(u8 at 9 layer 1 eq 6)\n    AND meta(priority eq 6)\n  ) OR u32(00350000/ffff0000 at 20)\n",
            "not (cmp(u8 at 9 layer 1 eq 6) and meta(priority eq 6)) or u32(u32 0x00350000 0xffff0000 at 20)",
        );
        check("nbyte(78 0a 22 \"x..\" at 1 layer 1)\n", "nbyte(\"x\\012\\042\" at 1 layer 1)");
        check("meta(dev eq d0)\n", "meta(dev eq \"d0\")");
        check("meta(fwmark mask 0x000000ff eq 6)\n", "meta(fwmark mask 0x000000ff eq 6)");
        check("canid(sff 0x7FF eff 0x1:0xF)\n", "canid(sff 0x7FF eff 0x1:0xF)");
        assert!(expression("cmp").is_err());
    }
}
