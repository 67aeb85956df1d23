//! What iperf3 3.18 of Debian 13 printed over loopback (`vectors/iperf3`), and what is printed here of the same numbers.
//!
//! JSON tells its numbers in full. A text tells them with three digits: those that are not told (parts of a second, bytes below a block) are
//! searched among those that can be meant.

use super::json::Json;
use super::print::{End, Ends, Interval, Row, SEPARATOR, Style, Tcp};
use serde_json::Value;
use std::path::Path;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/iperf3").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The number of which `ms` is a thousand times as much, to the last bit.
fn thousandth(ms: f64) -> f64 {
    let near = ms / 1000.0;
    let mut all = [near, near.next_up(), near.next_down()].into_iter();
    all.find(|x| x * 1000.0 == ms).unwrap_or(near)
}

fn number(json: &Value, name: &str) -> f64 {
    json[name].as_f64().unwrap_or_default()
}
fn count(json: &Value, name: &str) -> u64 {
    json[name].as_u64().unwrap_or_default()
}

fn row(json: &Value) -> Row {
    Row {
        id: count(json, "socket") as u32,
        sender: json["sender"].as_bool().unwrap(),
        start: number(json, "start"),
        end: number(json, "end"),
        seconds: number(json, "seconds") as f32,
        bytes: count(json, "bytes"),
        tcp: Tcp {
            retransmits: count(json, "retransmits"),
            cwnd: count(json, "snd_cwnd"),
            window: count(json, "snd_wnd"),
            rtt: number(json, "rtt") as i64,
            rttvar: number(json, "rttvar") as i64,
            pmtu: count(json, "pmtu"),
        },
        packets: count(json, "packets"),
        errors: count(json, "lost_packets"),
        jitter: thousandth(number(json, "jitter_ms")),
    }
}

fn ends(json: &Value, udp: bool) -> Ends {
    let mut rows = Vec::new();
    for stream in json["streams"].as_array().unwrap() {
        let (from, to) =
            if udp { (&stream["udp"], &stream["udp"]) } else { (&stream["sender"], &stream["receiver"]) };
        rows.push(End {
            id: count(from, "socket") as u32,
            sender: from["sender"].as_bool().unwrap(),
            sent: count(from, "bytes"),
            received: count(to, "bytes"),
            retransmits: count(from, "retransmits"),
            max_cwnd: count(from, "max_snd_cwnd"),
            max_window: count(from, "max_snd_wnd"),
            max_rtt: number(from, "max_rtt") as i64,
            min_rtt: number(from, "min_rtt") as i64,
            mean_rtt: number(from, "mean_rtt") as i64,
            sent_packets: count(from, "packets"),
            received_packets: count(from, "packets"),
            errors: count(from, "lost_packets"),
            jitter: thousandth(number(from, "jitter_ms")),
            out_of_order: count(from, "out_of_order"),
        });
    }
    let cpu = &json["cpu_utilization_percent"];
    let names = ["host_total", "host_user", "host_system", "remote_total", "remote_user", "remote_system"];
    let own = if udp { &json["sum_sent"] } else { &json["streams"][0]["receiver"] };
    Ends {
        rows,
        sender_s: number(&json["sum_sent"], "end"),
        receiver_s: number(&json["sum_received"], "end"),
        own_s: number(own, "seconds"),
        cpu: names.map(|name| number(cpu, name)),
        congestion: ["sender_tcp_congestion", "receiver_tcp_congestion"]
            .map(|name| json[name].as_str().unwrap_or_default().to_owned())
            .into(),
    }
}

fn style(start: &Value) -> Style {
    let test = &start["test_start"];
    Style {
        udp: test["protocol"] == "UDP",
        bidir: count(test, "bidir") == 1,
        client: true,
        parallel: count(test, "num_streams") as u32,
        format: 'a',
    }
}

#[test]
fn json_is_that_of_the_real_one_to_the_byte() {
    for name in ["json", "jsonR", "jsonP", "bidirJ", "ujson", "ujsonR", "bidirUJ", "jomit", "gsoJ"] {
        let text = file(&format!("{name}.json"));
        let json: Value = serde_json::from_str(&text).unwrap();
        let style = style(&json["start"]);
        let part = |from: &str, to: &str| {
            let rest = text.split(from).nth(1).unwrap();
            rest.split(to).next().unwrap().to_owned()
        };
        let intervals = json["intervals"].as_array().unwrap().iter().map(|i| {
            let rows = i["streams"].as_array().unwrap().iter().map(row).collect();
            style.interval_json(&Interval { rows, omitted: i["sum"]["omitted"].as_bool().unwrap() })
        });
        let intervals = Json::Array(intervals.collect());
        assert_eq!(intervals.print(1), part("\n\t\"intervals\":\t", ",\n\t\"end\":\t"), "{name}");
        let end = Json::Object(style.end_json(&ends(&json["end"], style.udp)));
        let behind =
            if json.get("server_output_text").is_some() { ",\n\t\"server_output_text\":" } else { "\n}" };
        let recorded = part("\n\t\"end\":\t", behind);
        assert_eq!(end.print(1), recorded.trim_end_matches('\n'), "{name}");
    }
}

#[test]
fn a_line_of_the_stream_is_that_of_the_real_one() {
    for name in ["js", "jsG"] {
        let text = file(&format!("{name}.jsonl"));
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let style = style(&lines[0]["data"]);
        for (line, json) in text.lines().zip(&lines) {
            let data = match json["event"].as_str().unwrap() {
                "interval" => {
                    let rows = json["data"]["streams"].as_array().unwrap().iter().map(row).collect();
                    style.interval_json(&Interval { rows, omitted: false })
                }
                "end" => Json::Object(style.end_json(&ends(&json["data"], false))),
                "server_output_text" => Json::Text(json["data"].as_str().unwrap().to_owned()),
                _ => continue,
            };
            let event = Json::Text(json["event"].as_str().unwrap().to_owned());
            assert_eq!(Json::Object(vec![("event", event), ("data", data)]).line(), line);
        }
    }
}

/// A line of a text, taken apart.
struct Line {
    id: Option<u32>,
    sender: Option<bool>,
    time: (f64, f64),
    bytes: u64,
    /// What stands behind the rate.
    rest: Vec<String>,
}

fn amount(number: &str, unit: &str) -> f64 {
    let unit = match unit.chars().next().unwrap() {
        'K' => 1024.0,
        'M' => 1_048_576.0,
        'G' => 1_073_741_824.0,
        _ => 1.0,
    };
    number.parse::<f64>().unwrap() * unit
}

fn line(text: &str, block: f64) -> Line {
    let (id, rest) = text[1..].split_once(']').unwrap();
    let (role, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(role, rest)| (Some(role), rest)).unwrap(),
        None => (None, rest),
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (start, end) = words[0].split_once('-').unwrap();
    Line {
        id: id.trim().parse().ok(),
        sender: role.map(|role| role.starts_with("TX")),
        time: (start.parse().unwrap(), end.parse().unwrap()),
        bytes: ((amount(words[2], words[3]) / block).round() * block) as u64,
        rest: words[6..].iter().map(|w| (*w).to_owned()).collect(),
    }
}

/// Seconds that may be printed as these.
fn near(s: f64) -> impl Iterator<Item = f64> {
    (-60..=60).map(move |n| s + f64::from(n) * 0.0001)
}

fn fraction(word: &str) -> (u64, u64) {
    let (errors, packets) = word.split_once('/').unwrap();
    (errors.parse().unwrap(), packets.parse().unwrap())
}

/// All of a text between the connections and `iperf Done`, printed again.
fn again(name: &str, style: &Style, sends: bool) {
    let text = file(&format!("{name}.txt"));
    let block = if style.udp { 32_768.0 } else { 131_072.0 };
    let from = text.find("[ ID]").unwrap();
    let own = text.find("\nServer output:\n").unwrap_or(text.len());
    let (intervals, _) = text[from..own].rsplit_once(&format!("{SEPARATOR}[ ID]")).unwrap();
    let end = &text[from + intervals.len() + SEPARATOR.len() + "[ ID]".len()..];
    let header = style.header(sends);
    let body = intervals.strip_prefix(&header).unwrap_or_else(|| panic!("{name}: {header}{intervals}"));
    // Interval by interval.
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for text in body.lines().filter(|l| !l.starts_with('-')) {
        let first = blocks.last().is_none_or(|b| b[0].starts_with(&text[..4]));
        if first { blocks.push(vec![text]) } else { blocks.last_mut().unwrap().push(text) }
    }
    for lines in blocks {
        let mut rows = Vec::new();
        for l in lines.iter().map(|l| line(l, block)) {
            let (Some(id), sender) = (l.id, l.sender.unwrap_or(sends)) else { continue };
            let mut row = Row {
                id,
                sender,
                start: l.time.0,
                end: l.time.1,
                seconds: 1.0,
                bytes: l.bytes,
                tcp: Tcp::default(),
                packets: 0,
                errors: 0,
                jitter: 0.0,
            };
            match (style.udp, sender) {
                (false, true) => {
                    row.tcp.retransmits = l.rest[0].parse().unwrap();
                    row.tcp.cwnd = amount(&l.rest[1], &l.rest[2]) as u64;
                }
                (false, false) => {}
                (true, true) => row.packets = l.rest[0].parse().unwrap(),
                (true, false) => {
                    row.jitter = l.rest[0].parse::<f64>().unwrap() / 1000.0;
                    (row.errors, row.packets) = fraction(&l.rest[2]);
                }
            }
            rows.push(row);
        }
        let omitted = lines[0].ends_with("(omitted)");
        let wanted = lines.join("\n") + "\n";
        let took = rows[0].end - rows[0].start;
        let found = near(took).chain([1.0]).any(|seconds| {
            rows.iter_mut().for_each(|r| r.seconds = seconds as f32);
            // The mean of rounded jitters may differ in its last digit.
            same(&style.interval(&Interval { rows: rows.clone(), omitted }), &wanted)
        });
        assert!(found, "{name}:\n{wanted}{}", style.interval(&Interval { rows, omitted }));
    }
    // The end.
    let (end, server) = match end.split_once("\nServer output:\n") {
        Some((end, said)) => (end, Some(said.split("\n\niperf Done.").next().unwrap().to_owned())),
        None => (end.split("\niperf Done.").next().unwrap(), None),
    };
    let mut rows: Vec<End> = Vec::new();
    let mut times = (0.0, 0.0);
    for text in end.lines().filter(|l| l.starts_with('[') && l.contains(" sec ")) {
        let l = line(text, block);
        let Some(id) = l.id else { continue };
        if rows.last().is_none_or(|r| r.id != id) {
            rows.push(End { id, sender: l.sender.unwrap_or(sends), ..End::default() });
        }
        let r = rows.last_mut().unwrap();
        let sent = text.ends_with("sender");
        if sent {
            (r.sent, times.0) = (l.bytes, l.time.1)
        } else {
            (r.received, times.1) = (l.bytes, l.time.1)
        }
        match (style.udp, sent) {
            (false, true) => r.retransmits = l.rest[0].parse().unwrap(),
            (false, false) => {}
            (true, true) => r.sent_packets = fraction(&l.rest[2]).1,
            (true, false) => {
                r.jitter = l.rest[0].parse::<f64>().unwrap() / 1000.0;
                (r.errors, r.received_packets) = fraction(&l.rest[2]);
            }
        }
    }
    let wanted = match &server {
        Some(said) => format!("{SEPARATOR}[ ID]{end}\nServer output:\n{said}\n"),
        None => format!("{SEPARATOR}[ ID]{end}"),
    };
    let mut ends = Ends { rows, ..Ends::default() };
    let found = near(times.0).any(|from| {
        near(times.1).any(|to| {
            (ends.sender_s, ends.receiver_s) = (from, to);
            same(&style.end(&ends, server.as_deref()), &wanted)
        })
    });
    assert!(found, "{name}:\n{wanted}\n{}", style.end(&ends, server.as_deref()));
}

/// Equal, but for the last digit of a sum's jitter: what is printed of each stream is rounded.
fn same(is: &str, wanted: &str) -> bool {
    is.len() == wanted.len()
        && is.lines().zip(wanted.lines()).all(|(a, b)| {
            a == b
                || a.starts_with("[SUM]")
                    && a.contains(" ms ")
                    && a.bytes().zip(b.bytes()).filter(|(x, y)| x != y).count() == 1
        })
}

#[test]
fn text_is_that_of_the_real_one() {
    let style = |udp, bidir, parallel| Style { udp, bidir, client: true, parallel, format: 'a' };
    again("tcp", &style(false, false, 1), true);
    again("tcpR", &style(false, false, 1), false);
    again("par", &style(false, false, 2), true);
    again("omit", &style(false, false, 1), true);
    again("gso", &style(false, false, 1), true);
    again("bidir", &style(false, true, 1), true);
    again("bidirP", &style(false, true, 2), true);
    again("udp", &style(true, false, 1), true);
    again("udpR", &style(true, false, 1), false);
    again("udpP", &style(true, false, 2), true);
    again("udpRP", &style(true, false, 2), false);
    again("bidirU", &style(true, true, 1), true);
}
