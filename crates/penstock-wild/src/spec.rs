//! Specifications of `penstock replay`, and records with something changed.

use crate::tc::Kinds;
use crate::{Result, Unstructured, number, one, tc};

/// A specification: commands, a line, packets, and commands among them.
///
/// # Errors
/// Those of [`Unstructured`].
pub fn spec(u: &mut Unstructured<'_>) -> Result<String> {
    let setup = tc::tree(u, "v0", Kinds::Simulated)?;
    let setup: Vec<String> = setup
        .iter()
        .map(|l| {
            // Below the line that the probe has made.
            let line =
                l.trim_start_matches("tc ").replace("qdisc add dev v0 root", "qdisc add dev $DEV $PARENT");
            format!("\"{}\"", line.replace("dev v0", "dev $DEV"))
        })
        .collect();
    let mut packets = Vec::new();
    let mut t = 0;
    for _ in 0..u.int_in_range(1..=12)? {
        t += u.int_in_range(0..=20_000)?;
        if u.ratio(1, 8)? {
            let line = tc::change(u, "v0", Kinds::Simulated)?
                .replace("dev v0 root", "dev $DEV $PARENT")
                .replace("dev v0", "dev $DEV");
            packets.push(format!("{{\"t_us\": {t}, \"run\": \"{}\"}}", line.trim_start_matches("tc ")));
            continue;
        }
        packets.push(format!(
            "{{\"t_us\": {t}, \"len\": {}, \"repeat\": {}, \"gap_us\": {}, \"dport\": {}, \"proto\": \"{}\", \"tos\": {}}}",
            u.int_in_range(42..=1514)?, number(u, 1, 12)?, u.int_in_range(0..=900)?,
            u.choose(&[5001, 53, 20_000])?, one(u, &["udp", "tcp"])?, u.choose(&[0, 16, 184])?
        ));
    }
    Ok(format!("{{\"setup\": [{}], \"packets\": [{}]}}", setup.join(", "), packets.join(", ")))
}

/// A record with a few of its numbers and words replaced.
///
/// # Errors
/// Those of [`Unstructured`].
pub fn record(u: &mut Unstructured<'_>, base: &str) -> Result<String> {
    let mut text = base.to_owned();
    for _ in 0..u.int_in_range(1..=6)? {
        // Of the values that are no list and no table.
        let starts = text.match_indices(": ").map(|(at, _)| at + 2);
        let starts: Vec<usize> = starts.filter(|&at| !text[at..].starts_with(['{', '['])).collect();
        if starts.is_empty() {
            break;
        }
        let at = *u.choose(&starts)?;
        let end = text[at..].find([',', '\n', '}']).map_or(text.len(), |n| at + n);
        // Mostly of the same type: what is refused at once tries little.
        let words = ["\"\"", "\"<script>\"", "\"\\u001b[31m\"", "\"eth0 class 1:\""];
        let numbers = ["0", "-1", "1", "1e308", "1e23", "4294967295", "18446744073709551615", "true"];
        let new = if text[at..].starts_with('"') { one(u, &words)? } else { one(u, &numbers)? };
        text.replace_range(at..end, new);
    }
    Ok(text)
}
