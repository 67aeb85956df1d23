//! How many packets, when, and which of many: `limit`, `hashlimit`, `statistic`, `time`, `quota`.

use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, Value, atoi, fault, number_prefix, opt};
use super::{Ext, Head, ext};
use crate::iptables::show::period_text;
use crate::iptables::{Asks, HashTable, Hashlimit, Match, Plain, Statistic, Times};
use std::fmt::Write;

pub(super) const MATCHES: &[Ext<Match>] = &[
    ext("hashlimit", HASHLIMIT, hashlimit).reads(read_hashlimit).checks(check_hashlimit),
    ext("limit", &[opt("limit", Kind::Text(0, 0)), opt("limit-burst", Kind::Int(0, 10_000))], limit)
        .reads(read_limit),
    ext("quota", &[opt("quota", Kind::Int(0, u64::MAX)).must().inv()], |seen, _| {
        let bytes = seen.int("quota").unwrap_or(0);
        let not = if seen.inverted("quota") { " !" } else { "" };
        let list = format!("quota: {bytes} bytes");
        let save = format!("{not} --quota {bytes}");
        let words = Plain { name: "quota".to_owned(), save, numeric: list.clone(), list };
        Match::Worded(words, Asks::Quota { bytes, invert: seen.inverted("quota") })
    }),
    ext("statistic", STATISTIC, statistic).reads(read_statistic).checks(check_statistic),
    ext("time", TIME, time).reads(read_time).checks(check_time),
];

/// `3/hour`, `5/s`: the gap between packets in parts of a second, and the unit in seconds; the error is `None` where it
/// is not a rate.
fn rate(text: &str, parts: u64) -> Result<(u64, u64), Option<Fault>> {
    const UNITS: [(&str, u64); 4] = [("second", 1), ("minute", 60), ("hour", 3600), ("day", 86_400)];
    let unit_s = match text.split_once('/') {
        None => 1,
        Some((_, unit)) => {
            let fits = |name: &str| name.get(..unit.len()).is_some_and(|n| n.eq_ignore_ascii_case(unit));
            let unit = UNITS.iter().find(|u| !unit.is_empty() && fits(u.0));
            unit.ok_or(None)?.1
        }
    };
    // A negative number is one past 2^31 to the program.
    let amount = match atoi(text) {
        0 => return Err(None),
        n if n < 0 => u64::from(n as i32 as u32),
        n => n as u64,
    };
    match parts * unit_s / amount {
        0 => {
            Err(Some((format!("Rate too fast \"{text}\""), "a smaller number, or a longer unit".to_owned())))
        }
        period => Ok((period, unit_s)),
    }
}

fn read_limit(given: &ParsedOption, head: &Head) -> Result<(), Fault> {
    if given.id != "limit" {
        return Ok(());
    }
    match rate(&given.text, 10_000) {
        Ok(_) => Ok(()),
        Err(Some(fast)) if !head.old => Err(fast),
        Err(_) => fault(format!("bad rate \"{}\"'", given.text), "e.g. 5/second, 10/minute"),
    }
}

fn limit(seen: &Seen, _: &Head) -> Match {
    let period = seen.find("limit").and_then(|g| rate(&g.text, 10_000).ok()).map_or(12_000_000, |r| r.0);
    Match::Limit { period: period as u32, burst: seen.int("limit-burst").unwrap_or(5) as u32 }
}

const STATISTIC: &[Opt] = &[
    opt("mode", Kind::Text(0, 0)).must(),
    opt("probability", Kind::Probability).excl(&["every", "packet"]).inv(),
    opt("every", Kind::Int(1, u32::MAX as u64)).excl(&["probability"]).also(&["packet"]).inv(),
    opt("packet", Kind::Int(0, u32::MAX as u64)).excl(&["probability"]).also(&["every"]),
];

fn read_statistic(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    match (given.id, given.text.as_str()) {
        ("mode", "random" | "nth") => Ok(()),
        ("mode", bad) => fault(format!("Bad mode \"{bad}\""), "random or nth"),
        _ => Ok(()),
    }
}

fn check_statistic(seen: &Seen, _: &Head) -> Result<(), Fault> {
    let random = !seen.has("mode") || seen.text("mode") == "random";
    if random && !seen.has("probability") {
        return fault("--probability must be specified when using random mode", "e.g. --probability 0.5");
    }
    if !random && !seen.has("every") && !seen.has("packet") {
        return fault(
            "--every and --packet must be specified when using nth mode",
            "e.g. --every 2 --packet 0",
        );
    }
    let every = seen.int("every").unwrap_or(0).saturating_sub(1);
    if !random && seen.int("packet").unwrap_or(0) > every {
        return fault("the --packet p must be 0 <= p <= n-1", "");
    }
    Ok(())
}

fn statistic(seen: &Seen, _: &Head) -> Match {
    let mode = match seen.find("probability").map(|g| &g.value) {
        Some(Value::Probability(p)) => Statistic::Random(*p),
        _ => Statistic::Nth {
            every: seen.int("every").unwrap_or(1) as u32,
            packet: seen.int("packet").unwrap_or(0) as u32,
        },
    };
    Match::Statistic { mode, invert: seen.inverted("probability") || seen.inverted("every") }
}

const HASHLIMIT: &[Opt] = &[
    opt("hashlimit-upto", Kind::Text(0, 0)).excl(&["hashlimit-above"]).inv(),
    opt("hashlimit-above", Kind::Text(0, 0)).excl(&["hashlimit-upto"]).inv(),
    opt("hashlimit", Kind::Text(0, 0)).id("hashlimit-upto").excl(&["hashlimit-above"]).inv(),
    opt("hashlimit-srcmask", Kind::Plen),
    opt("hashlimit-dstmask", Kind::Plen),
    opt("hashlimit-burst", Kind::Text(0, 0)),
    opt("hashlimit-htable-size", Kind::Int(0, u32::MAX as u64)),
    opt("hashlimit-htable-max", Kind::Int(0, u32::MAX as u64)),
    opt("hashlimit-htable-gcinterval", Kind::Int(0, u32::MAX as u64)),
    opt("hashlimit-htable-expire", Kind::Int(0, u32::MAX as u64)),
    opt("hashlimit-mode", Kind::Text(0, 0)),
    opt("hashlimit-name", Kind::Text(1, 0)).must(),
    opt("hashlimit-rate-match", Kind::None),
    opt("hashlimit-rate-interval", Kind::Text(0, 0)),
];

/// What `--hashlimit-upto` or `-above` says.
#[derive(Clone, Copy)]
enum HashRate {
    /// A gap in millionths of a second, and the unit's seconds.
    Packets(u64, u64),
    /// The kernel's cost of 16 bytes.
    Bytes(u64),
}

fn factor(unit: Option<char>) -> u64 {
    match unit {
        Some('m') => 1024 * 1024,
        Some('k') => 1024,
        _ => 1,
    }
}

fn bytes_to_cost(bytes: u64) -> u64 {
    let r = (bytes >> 4) as u32;
    u64::from(u32::MAX / r.saturating_add(1))
}
fn cost_to_bytes(cost: u64) -> u64 {
    let r = u64::from(u32::MAX).checked_div(cost).unwrap_or(u32::MAX.into());
    r.saturating_sub(1) << 4
}

fn hash_rate(text: &str) -> Result<HashRate, Option<Fault>> {
    if let Some(at) = text.find("b/s").filter(|&at| at > 0) {
        let amount = atoi(text).max(0) as u64;
        if amount > 0 {
            let bytes = amount.saturating_mul(factor(text[..at].chars().next_back()));
            return match bytes_to_cost(bytes) {
                0 => Err(Some((format!("Rate too high \"{text}\""), String::new()))),
                cost => Ok(HashRate::Bytes(cost)),
            };
        }
    }
    rate(text, 1_000_000).map(|(period, unit)| HashRate::Packets(period, unit))
}

fn hash_burst(text: &str) -> Option<u64> {
    let (value, rest) = number_prefix(text).filter(|(n, _)| *n >= 1)?;
    if rest.is_empty() && value > 1_000_000 {
        return None;
    }
    value.checked_mul(factor(rest.chars().next()))
}

/// Bits: 1 dstip, 2 dstport, 4 srcip, 8 srcport.
fn hash_mode(text: &str) -> Option<u8> {
    text.split([',', '|']).filter(|t| !t.is_empty()).try_fold(0, |bits, word| {
        Some(
            bits | match word {
                "dstip" => 1,
                "dstport" => 2,
                "srcip" => 4,
                "srcport" => 8,
                _ => return None,
            },
        )
    })
}

fn read_hashlimit(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    let text = given.text.as_str();
    let bad = || fault(format!("hashlimit: Bad value for \"--{}\" option: \"{text}\"", given.id), "");
    match given.id {
        "hashlimit-upto" | "hashlimit-above" => match hash_rate(text) {
            Ok(_) => Ok(()),
            Err(Some(f)) => Err(f),
            Err(None) => bad(),
        },
        "hashlimit-burst" if hash_burst(text).is_none() => {
            fault("bad value for option \"--hashlimit-burst\", or out of range (1-1000000).", "")
        }
        "hashlimit-mode" if hash_mode(text).is_none() => bad(),
        "hashlimit-rate-interval" if atoi(text) <= 0 => bad(),
        _ => Ok(()),
    }
}

fn seen_rate(seen: &Seen) -> Option<HashRate> {
    let given = seen.find("hashlimit-upto").or_else(|| seen.find("hashlimit-above"))?;
    hash_rate(&given.text).ok()
}

fn check_hashlimit(seen: &Seen, _: &Head) -> Result<(), Fault> {
    let Some(rate) = seen_rate(seen) else {
        return fault("You have to specify --hashlimit", "--hashlimit-upto or --hashlimit-above");
    };
    let burst = seen.find("hashlimit-burst").and_then(|g| hash_burst(&g.text));
    match (rate, burst) {
        (HashRate::Bytes(cost), Some(burst)) if burst < cost_to_bytes(cost) => {
            let least = cost_to_bytes(cost);
            fault(format!("burst cannot be smaller than {least}b"), "")
        }
        (HashRate::Packets(..), Some(burst)) if burst > 1_000_000 => {
            fault("bad value for option \"--hashlimit-burst\", or out of range (1-1000000).", "")
        }
        _ => Ok(()),
    }
}

/// A rate in bytes and its burst as the program writes them back; the expiry that goes without saying, ms.
fn bytes_text(cost: u64, burst: u64, prefix: &str) -> (String, u64) {
    const UNITS: [(&str, u64); 3] = [("m", 1024 * 1024), ("k", 1024), ("", 1)];
    let bytes = cost_to_bytes(cost);
    let exact = |u: &&(&str, u64)| bytes >= u.1 && bytes_to_cost(bytes & !(u.1 - 1)) == cost;
    let unit = UNITS[..2].iter().find(exact).unwrap_or(&UNITS[2]);
    let mut out = format!(" {}{}b/s", bytes / unit.1, unit.0);
    if burst == 0 {
        return (out, 15_000);
    }
    let all = bytes.saturating_mul(burst);
    let unit = UNITS[..2].iter().find(|u| all >= u.1).unwrap_or(&UNITS[2]);
    let _ = write!(out, " {prefix}burst {}{}b", all / unit.1, unit.0);
    (out, 60_000)
}

fn hashlimit(seen: &Seen, head: &Head) -> Match {
    let rate = seen_rate(seen).unwrap_or(HashRate::Packets(1_000_000, 1));
    let given_burst = seen.find("hashlimit-burst").and_then(|g| hash_burst(&g.text));
    let above =
        seen.has("hashlimit-above") != (seen.inverted("hashlimit-above") || seen.inverted("hashlimit-upto"));
    let rate_match = seen.has("hashlimit-rate-match");
    let mut interval = atoi(seen.text("hashlimit-rate-interval")).max(0) as u64;
    let (mut avg, unit) = match rate {
        HashRate::Packets(period, unit) => (period, unit),
        HashRate::Bytes(cost) => (cost, 15),
    };
    let in_bytes = matches!(rate, HashRate::Bytes(_));
    let burst = match (in_bytes, given_burst) {
        (false, burst) => burst.unwrap_or(5),
        (true, None) => 0,
        (true, Some(burst)) => burst.div_ceil(cost_to_bytes(avg).max(1)),
    };
    let expire = match seen.int("hashlimit-htable-expire") {
        Some(ms) => ms,
        None if in_bytes && given_burst.is_some() => 60_000,
        None => unit * 1000,
    };
    if rate_match {
        if !in_bytes {
            avg /= unit;
        }
        if interval == 0 {
            interval = if in_bytes { 1 } else { unit };
        }
    }
    let bits = head.family.bits();
    let mode = hash_mode(seen.text("hashlimit-mode")).unwrap_or(0);
    let text = |dashes: &str, shown: bool| {
        let mut out = String::new();
        let pre = if shown { "" } else { "--hashlimit-" };
        out.push_str(match (shown, above) {
            (true, true) => "limit: above",
            (true, false) => "limit: up to",
            (false, true) => " --hashlimit-above",
            (false, false) => " --hashlimit-upto",
        });
        let quantum = if in_bytes {
            let (text, quantum) = bytes_text(avg, burst, pre);
            out.push_str(&text);
            quantum
        } else {
            let period = if shown && interval != 0 { avg * interval } else { avg };
            let (text, unit_s) = period_text(period, 1_000_000);
            let _ = write!(out, " {text} {pre}burst {burst}");
            unit_s * 1000
        };
        if mode != 0 {
            const NAMES: [(u8, &str); 4] = [(4, "srcip"), (8, "srcport"), (1, "dstip"), (2, "dstport")];
            let names: Vec<&str> = NAMES.iter().filter(|n| mode & n.0 != 0).map(|n| n.1).collect();
            let _ = write!(out, " {pre}mode {}", names.join(dashes));
        }
        if !shown {
            let _ = write!(out, " --hashlimit-name {}", seen.text("hashlimit-name"));
        }
        for id in ["htable-size", "htable-max"] {
            if let Some(n) = seen.int(&format!("hashlimit-{id}")).filter(|&n| n != 0) {
                let _ = write!(out, " {pre}{id} {n}");
            }
        }
        if let Some(ms) = seen.int("hashlimit-htable-gcinterval").filter(|&ms| ms != 1000) {
            let _ = write!(out, " {pre}htable-gcinterval {ms}");
        }
        if expire != quantum {
            let _ = write!(out, " {pre}htable-expire {expire}");
        }
        for id in ["srcmask", "dstmask"] {
            let len = seen.net(&format!("hashlimit-{id}")).map(|(_, mask)| mask.count_ones());
            if let Some(len) = len.filter(|&len| len != bits) {
                let _ = write!(out, " {pre}{id} {len}");
            }
        }
        if rate_match {
            let _ = write!(out, " {pre}rate-match");
            if interval != 1 {
                let _ = write!(out, " {pre}rate-interval {interval}");
            }
        }
        out
    };
    let list = text("-", true);
    let words = Plain { name: "hashlimit".to_owned(), save: text(",", false), numeric: list.clone(), list };
    let number = |id: &str, default: u32| seen.int(id).map_or(default, |n| n as u32);
    let mask = |id: &str| seen.net(id).map_or(head.family.mask(bits), |(_, mask)| mask);
    let table = HashTable {
        avg,
        burst,
        bytes: in_bytes,
        mode,
        srcmask: mask("hashlimit-srcmask"),
        dstmask: mask("hashlimit-dstmask"),
        size: number("hashlimit-htable-size", 0),
        max: number("hashlimit-htable-max", 0),
        gc_interval: number("hashlimit-htable-gcinterval", 1000),
        expire: expire as u32,
        interval: interval as u32,
    };
    let name = seen.text("hashlimit-name").to_owned();
    Match::Worded(words, Asks::Hashlimit(Hashlimit { name, above, bytes: in_bytes, rate_match, table }))
}

const TIME: &[Opt] = &[
    opt("datestart", Kind::Text(0, 0)),
    opt("datestop", Kind::Text(0, 0)),
    opt("timestart", Kind::Text(0, 0)),
    opt("timestop", Kind::Text(0, 0)),
    opt("contiguous", Kind::None),
    opt("weekdays", Kind::Text(0, 0)).inv(),
    opt("monthdays", Kind::Text(0, 0)).inv(),
    opt("localtz", Kind::None).excl(&["utc"]),
    opt("utc", Kind::None).excl(&["localtz", "kerneltz"]),
    opt("kerneltz", Kind::None).excl(&["utc"]),
];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Seconds since 1970 of `YYYY[-MM[-DD[Thh[:mm[:ss]]]]]`, and the same written out.
fn date(text: &str) -> Option<(i64, String)> {
    let (day, clock) = text.split_once('T').map_or((text, None), |(d, c)| (d, Some(c)));
    let parts: Vec<&str> = day.split('-').collect();
    if parts.len() > 3 || (clock.is_some() && parts.len() != 3) {
        return None;
    }
    let field = |t: Option<&&str>, default: i64, most: i64| match t {
        None => Some(default),
        Some(&"") => Some(0),
        Some(t) => t.parse::<i64>().ok().filter(|n| (0..=most).contains(n)),
    };
    let year = field(parts.first(), 0, 2038).filter(|&y| y >= 1970)?;
    let month = field(parts.get(1), 1, 12)?;
    let day = field(parts.get(2), 1, 31)?;
    let clock: Vec<&str> = clock.map_or(Vec::new(), |c| c.split(':').collect());
    if clock.len() > 3 {
        return None;
    }
    let h = field(clock.first(), 0, 23)?;
    let m = field(clock.get(1), 0, 59)?;
    let s = field(clock.get(2), 0, 59)?;
    // Days from the civil calendar, months counted from March; overlong ones run over as mktime lets them.
    let (y, mo) = (year - i64::from(month <= 2), (month + 9) % 12);
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * mo + 2) / 5 + day - 1 - 719_468;
    let at = days * 86_400 + h * 3600 + m * 60 + s;
    Some((at, written(at)))
}

fn written(at: i64) -> String {
    let z = at.div_euclid(86_400) + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + i64::from(month <= 2);
    let s = at.rem_euclid(86_400);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// Seconds of `hh:mm[:ss]`; the error is the part that is wrong.
fn minutes(text: &str) -> Result<u32, &str> {
    let (hour, rest) = text.split_once(':').ok_or(text)?;
    let hour = hour.parse::<u32>().ok().filter(|&h| h <= 23).ok_or(text)?;
    let (minute, second) = rest.split_once(':').map_or((rest, None), |(m, s)| (m, Some(s)));
    let minute = minute.parse::<u32>().ok().filter(|&m| m <= 59).ok_or(rest)?;
    let second = match second {
        None => 0,
        Some(s) => s.parse::<u32>().ok().filter(|&n| n <= 59).ok_or(s)?,
    };
    Ok(hour * 3600 + minute * 60 + second)
}

fn weekdays(text: &str) -> Result<u32, Fault> {
    let mut bits = 0;
    for day in text.split(',') {
        let day: String = day.chars().take(3).collect();
        if let Ok(n) = day.parse::<u32>() {
            if n == 0 {
                return fault("No, the week does NOT begin with Sunday.", "Monday is 1, Sunday 7");
            }
            bits |= 1u32.checked_shl(n).unwrap_or(0);
            continue;
        }
        let two = |n: &&&str| day.len() >= 2 && n.as_bytes()[..2] == day.as_bytes()[..2];
        match DAYS.iter().find(two) {
            Some(name) => bits |= 2 << DAYS.iter().position(|d| d == name).unwrap_or(0),
            None => return fault(format!("{day} is not a valid day specifier"), "Mon,Tue,… or 1 to 7"),
        }
    }
    Ok(bits)
}

fn monthdays(text: &str) -> Result<u32, Fault> {
    let mut bits = 0u32;
    for day in text.split(',') {
        let day: String = day.chars().take(2).collect();
        match super::super::option::number(&day).filter(|&n| n <= 31) {
            Some(n) => bits |= 1 << n,
            None => return fault(format!("{day} is not a valid day for --monthdays"), "1 to 31"),
        }
    }
    Ok(bits)
}

fn read_time(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    let text = given.text.as_str();
    match given.id {
        "datestart" | "datestop" if date(text).is_none() => {
            fault(format!("Invalid date \"{text}\" specified. Should be YYYY[-MM[-DD[Thh[:mm[:ss]]]]]"), "")
        }
        "timestart" | "timestop" => match minutes(text) {
            Ok(_) => Ok(()),
            Err(bad) => fault(
                format!(
                    "invalid time \"{bad}\" specified, should be hh:mm[:ss] format and within the boundaries"
                ),
                "",
            ),
        },
        "weekdays" => weekdays(text).map(drop),
        "monthdays" => monthdays(text).map(drop),
        _ => Ok(()),
    }
}

fn day_times(seen: &Seen) -> (u32, u32) {
    let at = |id: &str, default| seen.find(id).and_then(|g| minutes(&g.text).ok()).unwrap_or(default);
    (at("timestart", 0), at("timestop", 86_399))
}

fn check_time(seen: &Seen, _: &Head) -> Result<(), Fault> {
    let (start, stop) = day_times(seen);
    if seen.has("contiguous") && start < stop {
        let message = "time: --contiguous only makes sense when stoptime is smaller than starttime";
        return fault(message, "");
    }
    Ok(())
}

fn time(seen: &Seen, _: &Head) -> Match {
    const ALL_MONTH: u32 = Times::EVERY_DAY;
    const ALL_WEEK: u32 = 0xfe;
    let (start, stop) = day_times(seen);
    let clock = |s: u32| format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
    let mask = |id: &str, all: u32, read: fn(&str) -> Result<u32, Fault>| match seen.find(id) {
        Some(g) => read(&g.text).unwrap_or(all) ^ if g.invert { all } else { 0 },
        None => all,
    };
    let month = mask("monthdays", ALL_MONTH, monthdays);
    let week = mask("weekdays", ALL_WEEK, weekdays);
    let day_of = |id: &str| seen.find(id).and_then(|g| date(&g.text));
    let (from, until) = (day_of("datestart").filter(|d| d.0 != 0), day_of("datestop"));
    let local = seen.has("localtz") || seen.has("kerneltz");
    let month_days = |human: bool| {
        let name = |d: u32| match (human, d % 10) {
            (false, _) => d.to_string(),
            (_, 1) => format!("{d}st"),
            (_, 2) => format!("{d}nd"),
            (_, 3) => format!("{d}rd"),
            _ => format!("{d}th"),
        };
        (1..=31).filter(|d| month & 1 << d != 0).map(name).collect::<Vec<_>>().join(",")
    };
    let week_days =
        || (1..=7).filter(|d| week & 1 << d != 0).map(|d| DAYS[d - 1]).collect::<Vec<_>>().join(",");
    let (mut save, mut list) = (String::new(), "TIME".to_owned());
    if (start, stop) != (0, 86_399) {
        let _ = write!(save, " --timestart {} --timestop {}", clock(start), clock(stop));
        let _ = write!(list, " from {} to {}", clock(start), clock(stop));
    }
    if month != ALL_MONTH {
        let _ = write!(save, " --monthdays {}", month_days(false));
    }
    if week != ALL_WEEK {
        let _ = write!(save, " --weekdays {}", week_days());
        let _ = write!(list, " on {}", week_days());
    }
    if month != ALL_MONTH {
        let _ = write!(list, " on {}", month_days(true));
    }
    if let Some((_, text)) = &from {
        let _ = write!(save, " --datestart {text}");
        let _ = write!(list, " starting from {}", text.replace('T', " "));
    }
    // A last day is always written, and without one the last second of 31 bits.
    let last = until.as_ref().map_or_else(|| written(i64::from(i32::MAX)), |(_, text)| text.clone());
    let _ = write!(save, " --datestop {last}");
    if until.as_ref().is_some_and(|d| d.0 != i64::from(i32::MAX)) {
        let _ = write!(list, " until date {}", last.replace('T', " "));
    }
    if local {
        save.push_str(" --kerneltz");
    } else {
        list.push_str(" UTC");
    }
    if seen.has("contiguous") {
        save.push_str(" --contiguous");
        list.push_str(" contiguous");
    }
    let words = Plain { name: "time".to_owned(), save, numeric: list.clone(), list };
    let second = |day: &Option<(i64, String)>, default: u32| day.as_ref().map_or(default, |d| d.0 as u32);
    let date = (second(&from, 0), second(&until, i32::MAX as u32));
    let contiguous = seen.has("contiguous");
    Match::Worded(words, Asks::Time(Times { date, day: (start, stop), month, week, contiguous }))
}
