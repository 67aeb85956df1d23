//! What `tc -s qdisc show` and `tc -s class show` print, read back.

use penstock_model::Rate;

/// A qdisc or a class with its counters.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Object {
    /// Whether it is a class.
    pub is_class: bool,
    /// Kind.
    pub kind: String,
    /// Handle or classid.
    pub id: String,
    /// Device, where the line names it.
    pub dev: String,
    /// `root` or a classid.
    pub parent: String,
    /// Handle of the qdisc in a class.
    pub leaf: Option<String>,
    /// The rest of its line.
    pub options: String,
    /// Configured rate, bit/s.
    pub rate_bit_s: Option<f64>,
    /// Configured ceiling, bit/s.
    pub ceil_bit_s: Option<f64>,
    /// Priority.
    pub prio: Option<u32>,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Overlimits.
    pub overlimits: u64,
    /// Requeues.
    pub requeues: u64,
    /// Bytes queued; tc rounds what is a whole number of kilobytes within 16 bytes.
    pub backlog: u64,
    /// Packets queued.
    pub qlen: u64,
    /// Packets on its own tokens.
    pub lended: Option<u64>,
    /// Packets on an ancestor's tokens.
    pub borrowed: Option<u64>,
}

/// A number behind a word: `dropped 5,` of `dropped`.
fn after(words: &[&str], word: &str) -> Option<u64> {
    let at = words.iter().position(|w| w.trim_start_matches('(') == word)?;
    words.get(at + 1)?.trim_end_matches([',', ')']).parse().ok()
}

/// `1500b`, `12Kb`, `1.5Mb` in bytes.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "Kb" => 1024.0,
        "Mb" => 1024.0 * 1024.0,
        "b" => 1.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|n| (n * unit) as u64)
}

/// Reads a listing.
pub fn parse(text: &str) -> Vec<Object> {
    let mut found: Vec<Object> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if matches!(words.first(), Some(&("qdisc" | "class"))) && words.len() > 2 && !line.starts_with(' ') {
            found.push(head(&words));
        } else if let Some(object) = found.last_mut() {
            counters(object, &words);
        }
    }
    found
}

fn head(words: &[&str]) -> Object {
    let mut object = Object {
        is_class: words[0] == "class",
        kind: words[1].to_owned(),
        id: words[2].to_owned(),
        ..Object::default()
    };
    let mut rest = words[3..].iter().copied();
    let mut options = Vec::new();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().unwrap_or_default().to_owned();
        match word {
            // An option may have the same word as these; they stand first.
            "dev" if options.is_empty() => object.dev = value(),
            "root" if options.is_empty() => object.parent = "root".to_owned(),
            "parent" if options.is_empty() => object.parent = value(),
            "refcnt" if options.is_empty() => drop(value()),
            "leaf" if options.is_empty() => object.leaf = Some(value()),
            _ => options.push(word),
        }
    }
    let rate = |name: &str| {
        let at = options.iter().position(|w| *w == name)?;
        Rate::parse(options.get(at + 1)?).ok().map(|r| r.bit_per_s() as f64)
    };
    object.rate_bit_s = rate("rate");
    object.ceil_bit_s = rate("ceil");
    object.prio = after(&options, "prio").map(|n| n as u32);
    object.options = options.join(" ");
    object
}

fn counters(object: &mut Object, words: &[&str]) {
    match words.first() {
        Some(&"Sent") => {
            object.bytes = after(words, "Sent").unwrap_or(0);
            object.packets = after(words, "bytes").unwrap_or(0);
            object.drops = after(words, "dropped").unwrap_or(0);
            object.overlimits = after(words, "overlimits").unwrap_or(0);
            object.requeues = after(words, "requeues").unwrap_or(0);
        }
        Some(&("backlog" | "rate")) => {
            let Some(at) = words.iter().position(|w| *w == "backlog") else { return };
            object.backlog = words.get(at + 1).and_then(|w| size(w)).unwrap_or(0);
            let packets = words.get(at + 2).and_then(|w| w.strip_suffix('p'));
            object.qlen = packets.and_then(|w| w.parse().ok()).unwrap_or(0);
        }
        Some(&"lended:") => {
            object.lended = after(words, "lended:");
            object.borrowed = after(words, "borrowed:");
        }
        _ => {}
    }
}

/// Counters of devices in `/proc/PID/net/dev`: name, bytes sent, packets sent.
pub fn devices(text: &str) -> Vec<(String, u64, u64)> {
    let lines = text.lines().filter_map(|line| {
        let (name, counters) = line.split_once(':')?;
        let numbers: Vec<u64> = counters.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        Some((name.trim().to_owned(), *numbers.get(8)?, *numbers.get(9)?))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tc_is_read_back() {
        let text = "qdisc htb 1: dev eth0 root refcnt 3 r2q 10 default 0x30 direct_packets_stat 1\n Sent 90 bytes 1 pkt (dropped 2, overlimits 3 requeues 4) \n backlog \
            12Kb 8p requeues 4\nqdisc tbf 2: dev eth0 parent 1:10 rate 220Kbit burst 1540b lat 50ms \n Sent 5 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n\
            class htb 1:10 parent 1:1 leaf 2: prio 3 rate 6Mbit ceil 7Mbit burst 1599b cburst 1599b\n Sent 7 bytes 5 pkt (dropped 0, overlimits 0 requeues 0)\n backlog \
            1514b 1p requeues 0\n lended: 4 borrowed: 1 giants: 0\n tokens: 33328 ctokens: 33328\n\nclass htb 1:1 root rate 15Mbit ceil 15Mbit\n";
        let o = parse(text);
        assert_eq!(o.len(), 4);
        assert_eq!((o[0].dev.as_str(), o[0].parent.as_str(), o[0].id.as_str()), ("eth0", "root", "1:"));
        assert_eq!((o[0].bytes, o[0].packets, o[0].drops, o[0].overlimits, o[0].requeues), (90, 1, 2, 3, 4));
        assert_eq!((o[0].backlog, o[0].qlen), (12 * 1024, 8));
        assert_eq!(o[0].options, "r2q 10 default 0x30 direct_packets_stat 1");
        assert_eq!((o[1].parent.as_str(), o[1].rate_bit_s), ("1:10", Some(220_000.0)));
        assert_eq!((o[2].leaf.as_deref(), o[2].prio, o[2].ceil_bit_s), (Some("2:"), Some(3), Some(7e6)));
        assert_eq!((o[2].lended, o[2].borrowed, o[2].backlog), (Some(4), Some(1), 1514));
        assert_eq!((o[3].parent.as_str(), o[3].is_class), ("root", true));
    }

    #[test]
    fn device_counters_are_read() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets\n  eth0: 1 2 3 4 5 6 7 8 90 10 0 0 0 0 0 0\n";
        assert_eq!(devices(text), [("eth0".to_owned(), 90, 10)]);
    }
}
