//! What `iperf`, `iperf3` and `ping` print, read into numbers.

/// What a program says of itself.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Printed {
    /// Throughput, bit/s.
    pub throughput_bit_s: Option<f64>,
    /// Payload bytes.
    pub bytes: Option<u64>,
    /// Sent and received packets.
    pub packets: Option<(u64, u64)>,
    /// Segments retransmitted.
    pub retransmitted: Option<u64>,
    /// Round trips, ms, with the number of the request.
    pub rtts: Vec<(u64, f64)>,
    /// Jitter, ms.
    pub jitter_ms: Option<f64>,
    /// Interim reports: stream, from and to (seconds), bytes, bit/s.
    pub intervals: Vec<(u32, f64, f64, u64, f64)>,
}

/// Reads the output of the program that this command line starts; nothing for a program that reports no numbers.
pub fn parse(run: &str, text: &str) -> Printed {
    let words: Vec<&str> = run.split_whitespace().filter(|w| *w != "sudo").collect();
    let name = words.first().map_or("", |w| w.rsplit('/').next().unwrap_or(w));
    let server = words.iter().any(|w| *w == "-s" || *w == "--server");
    match name {
        "ping" => ping(text),
        "iperf" | "iperf3" => {
            // With -R it is the client of iperf3 that receives.
            let receives = server || words.iter().any(|w| *w == "-R" || *w == "--reverse");
            iperf(text, (server, receives), words.contains(&"-u"), name == "iperf3")
        }
        _ => Printed::default(),
    }
}

/// The throughput of all connections of an `iperf`, bit/s; `None` for other programs and where it is no other than [`parse`] tells.
///
/// Of a client it is the sum of its connections' own rows: the clock of 2.1's `[SUM]` stops earlier than any of theirs. Of a server it is
/// the last row, the sum, where a client ran several at once (`together`): which of them it reports last is chance.
pub fn of_all_connections(run: &str, text: &str, together: bool) -> Option<f64> {
    let words: Vec<&str> = run.split_whitespace().filter(|w| *w != "sudo").collect();
    let (name, rest) = words.split_first()?;
    if !name.ends_with("iperf") {
        return None;
    }
    if rest.iter().any(|w| *w == "-s" || *w == "--server") {
        return text.lines().filter_map(row).next_back().filter(|_| together).map(|r| r.rate);
    }
    let own: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with("[SUM]")).collect();
    parse(run, &own.join("\n")).throughput_bit_s
}

fn ping(text: &str) -> Printed {
    let mut printed = Printed::default();
    for line in text.lines() {
        let field = |name: &str| {
            let rest = &line[line.find(name)? + name.len()..];
            rest.split([' ', ',']).next().map(str::to_owned)
        };
        if line.contains(" bytes from ") {
            let time = field("time=").and_then(|t| t.parse().ok());
            let number = field("icmp_seq=").or_else(|| field("icmp_req=")).and_then(|n| n.parse().ok());
            if let (Some(time), Some(number)) = (time, number) {
                printed.rtts.push((number, time));
            }
        } else if line.contains("packets transmitted") {
            let numbers: Vec<u64> = line.split_whitespace().filter_map(|w| w.parse().ok()).collect();
            if let [sent, received, ..] = numbers[..] {
                printed.packets = Some((sent, received));
            }
        }
    }
    printed
}

/// A row of a report: `[  3]  0.0-10.0 sec  11.1 MBytes  9.30 Mbits/sec …`.
struct Row<'a> {
    id: &'a str,
    from: f64,
    to: f64,
    bytes: f64,
    rate: f64,
    rest: Vec<&'a str>,
}

fn row(line: &str) -> Option<Row<'_>> {
    let (id, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    // Old forms put a blank behind the dash: `0.0- 2.0 sec`.
    let sec = words.iter().position(|w| *w == "sec")?;
    let span = words[..sec].concat();
    let (from, to) = span.split_once('-')?;
    let number = |at: usize| words.get(sec + at)?.parse::<f64>().ok();
    let unit = |at: usize| words.get(sec + at).copied();
    let bytes = number(1)? * scale(unit(2)?, 1024.0)?;
    let rate = number(3)? * scale(unit(4)?, 1000.0)?;
    let rest = words.get(sec + 5..).unwrap_or_default().to_vec();
    Some(Row { id: id.trim(), from: from.parse().ok()?, to: to.parse().ok()?, bytes, rate, rest })
}

/// `KBytes` by 1024, `Kbits/sec` by 1000.
fn scale(unit: &str, base: f64) -> Option<f64> {
    let power = match unit.chars().next()? {
        'K' => 1,
        'M' => 2,
        'G' => 3,
        'T' => 4,
        'b' | 'B' => 0,
        _ => return None,
    };
    let bits = if unit.contains("Bytes/sec") { 8.0 } else { 1.0 };
    Some(base.powi(power) * bits)
}

fn iperf(text: &str, (server, receives): (bool, bool), udp: bool, third: bool) -> Printed {
    let mut printed = Printed::default();
    let rows: Vec<Row<'_>> = text.lines().filter_map(row).collect();
    let ids: Vec<&str> =
        rows.iter().map(|r| r.id).filter(|id| *id != "SUM").fold(Vec::new(), |mut all, id| {
            if !all.contains(&id) {
                all.push(id);
            }
            all
        });
    // What the server says, behind its heading, covers another time than the client's own rows.
    let own_rows = match text.lines().position(|line| line.contains("Server Report:")) {
        Some(at) => text.lines().take(at).filter_map(row).count(),
        None => rows.len(),
    };
    // The whole: the last row of an id; of iperf3 the receiver's, which comes after the sender's.
    let is_final = |(n, r): &(usize, &Row<'_>)| match third {
        true => matches!(r.rest.last(), Some(&("sender" | "receiver"))),
        false => {
            let side = if *n < own_rows { &rows[..own_rows] } else { &rows[own_rows..] };
            let last = side.iter().filter(|o| o.id == r.id).map(|o| o.to).fold(0.0, f64::max);
            // A first interval begins at 0 as well and may be the only one.
            r.from == 0.0 && (last - r.to).abs() < 1e-9
        }
    };
    let many = ids.len() > 1 && !server;
    let side = |r: &Row<'_>| !third || (r.rest.last() == Some(&"receiver")) == (receives || udp);
    let finals: Vec<&Row<'_>> =
        rows.iter().enumerate().filter(|r| is_final(r) && side(r.1)).map(|r| r.1).collect();
    let sum: Vec<&&Row<'_>> = finals.iter().filter(|r| r.id == "SUM").collect();
    let of = |last: bool| -> Vec<&&Row<'_>> {
        let pick = |id: &&str| match last {
            true => finals.iter().rfind(|r| r.id == *id),
            false => finals.iter().find(|r| r.id == *id),
        };
        ids.iter().filter_map(pick).collect()
    };
    // A server's figure is that of the connection it reported last; a client's that of all its streams. A client of UDP prints its own
    // row first, and then what its server says: of that the losses and the jitter.
    let own: Vec<&&Row<'_>> = match (server, sum.is_empty()) {
        (true, _) => finals.iter().rfind(|r| r.id != "SUM").into_iter().collect(),
        (false, false) => sum,
        (false, true) => of(third),
    };
    if !own.is_empty() {
        printed.bytes = Some(own.iter().map(|r| r.bytes).sum::<f64>() as u64);
        printed.throughput_bit_s = Some(own.iter().map(|r| r.rate).sum());
        let told = if server { own } else { of(true) };
        datagrams(&told, &mut printed);
    }
    if third {
        let total = if many { "SUM" } else { ids.first().copied().unwrap_or_default() };
        let sent = rows.iter().find(|r| r.id == total && r.rest.last() == Some(&"sender"));
        printed.retransmitted = sent.filter(|_| !udp).and_then(|r| r.rest.first()?.parse().ok());
    }
    for (_, r) in rows.iter().enumerate().filter(|r| r.1.id != "SUM" && !is_final(r)) {
        let stream = ids.iter().position(|id| *id == r.id).unwrap_or(0);
        printed.intervals.push((stream as u32, r.from, r.to, r.bytes as u64, r.rate));
    }
    printed
}

/// `0.003 ms  0/ 893 (0%)`: jitter, lost and sent datagrams.
fn datagrams(rows: &[&&Row<'_>], printed: &mut Printed) {
    let mut totals: Option<(u64, u64)> = None;
    for r in rows {
        let text = r.rest.join(" ");
        if let Some(at) = r.rest.iter().position(|w| *w == "ms")
            && let Some(jitter) = at.checked_sub(1).and_then(|at| r.rest[at].parse().ok())
        {
            printed.jitter_ms.get_or_insert(jitter);
        }
        let Some((left, right)) = text.split_once('/') else { continue };
        let lost = left.split_whitespace().next_back().and_then(|n| n.parse::<u64>().ok());
        let sent = right.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
        if let (Some(lost), Some(sent)) = (lost, sent) {
            let (all, got) = totals.unwrap_or((0, 0));
            totals = Some((all + sent, got + sent.saturating_sub(lost)));
        }
    }
    printed.packets = totals.or(printed.packets);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ping_is_read() {
        let text = "PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.\n64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.074 ms\n\
            64 bytes from 10.0.0.2: icmp_seq=3 ttl=64 time=1.5 ms\n\n--- 10.0.0.2 ping statistics ---\n3 packets transmitted, 2 received, 33% packet loss, time 431ms\n";
        let p = parse("ping -c 3 10.0.0.2", text);
        assert_eq!((p.rtts, p.packets), (vec![(1, 0.074), (3, 1.5)], Some((3, 2))));
    }

    #[test]
    fn iperf_of_a_client_is_read() {
        let text = "[  1] local 10.0.0.1 port 42378 connected with 10.0.0.2 port 5001 (icwnd/mss/irtt=14/1448/53)\n[ ID] Interval       Transfer     Bandwidth\n\
            [  1] 0.0000-1.0000 sec  11.1 MBytes  93.3 Mbits/sec\n[  1] 1.0000-2.0000 sec  10.9 MBytes  91.2 Mbits/sec\n[  1] 0.0000-2.0495 sec  22.0 MBytes  90.2 Mbits/sec\n";
        let p = parse("sudo iperf -c 10.0.0.2 -t 2 -i 1", text);
        assert_eq!((p.throughput_bit_s, p.bytes, p.intervals.len()), (Some(90.2e6), Some(23_068_672), 2));
        assert_eq!(p.intervals[1], (0, 1.0, 2.0, (10.9 * 1_048_576.0) as u64, 91.2e6));
        let parallel = "[  1] 0.0-5.0 sec  10.0 MBytes  16.0 Mbits/sec\n[  2] 0.0-5.0 sec  20.0 MBytes  32.0 Mbits/sec\n[SUM] 0.0-5.0 sec  30.0 MBytes  48.0 Mbits/sec\n";
        assert_eq!(parse("iperf -c a -P 2", parallel).throughput_bit_s, Some(48e6));
    }

    #[test]
    fn iperf_of_datagrams_is_read() {
        let text = "[  1] 0.0000-10.0013 sec  1.25 MBytes  1.05 Mbits/sec\n[  1] Sent 895 datagrams\n[  1] Server Report:\n\
            [ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n[  1] 0.0000-10.0013 sec  1.20 MBytes  1.01 Mbits/sec   0.014 ms 5/895 (0.56%)\n";
        let p = parse("iperf -c a -u", text);
        assert_eq!(
            (p.packets, p.jitter_ms, p.throughput_bit_s),
            (Some((895, 890)), Some(0.014), Some(1.05e6))
        );
        let late = text.replace("0.0000-10.0013 sec  1.20", "0.0000-10.7513 sec  1.20");
        assert_eq!(parse("iperf -c a -u", &late).throughput_bit_s, Some(1.05e6));
        let two = "[  1] 0.0-10.0 sec  10.0 MBytes  8.39 Mbits/sec\n[  2] 0.0-5.0 sec  10.0 MBytes  16.8 Mbits/sec\n";
        assert_eq!(parse("iperf -s", two).throughput_bit_s, Some(16.8e6));
        let together = format!("{two}[SUM] 0.0-10.0 sec  30.0 MBytes  25.2 Mbits/sec\n");
        assert_eq!(of_all_connections("sudo iperf -s -i 1", &together, true), Some(25.2e6));
        assert_eq!(of_all_connections("iperf -s", two, false), None);
        let early =
            two.replace("0.0-5.0 sec", "0.0-10.0 sec") + "[SUM] 0.0-9.5 sec  20.0 MBytes  26.5 Mbits/sec\n";
        assert_eq!(of_all_connections("iperf -c a -P 2", &early, true), Some(25.19e6));
    }

    #[test]
    fn iperf3_is_read() {
        let text = "[  5]   0.00-1.00   sec  11.2 MBytes  94.4 Mbits/sec    0    320 KBytes\n[  5]   1.00-2.00   sec  11.2 MBytes  94.4 Mbits/sec    3    320 KBytes\n\
            - - -\n[ ID] Interval           Transfer     Bitrate         Retr\n[  5]   0.00-2.00   sec  22.4 MBytes  94.4 Mbits/sec    3             sender\n\
            [  5]   0.00-2.04   sec  22.0 MBytes  90.5 Mbits/sec                  receiver\n";
        let p = parse("iperf3 -c a", text);
        assert_eq!((p.throughput_bit_s, p.retransmitted, p.intervals.len()), (Some(94.4e6), Some(3), 2));
        assert_eq!(parse("iperf3 -s", text).throughput_bit_s, Some(90.5e6));
        assert_eq!(parse("iperf3 -c a -R", text).throughput_bit_s, Some(90.5e6));
    }
}
