//! Runs of programs in random networks that were recorded on Linux 6.12 by `vectors/traceroute/record.py`, made again here.
//!
//! Times are the same to two microseconds: a real clock is read at another fraction of a microsecond. Those of neighbours that are asked for three
//! seconds in vain hang on the kernel's ticks, which are 10 ms there and 4 ms here.

use crate::{End, HostId, LinkSpec, World};
use penstock_model::{Kernel, Span, Time};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The text without the time of the day.
fn undated(text: &str) -> String {
    let line = |line: &str| match line.split(',').collect::<Vec<_>>()[..] {
        ["MTR.0.95", _, ref rest @ ..] => format!("MTR.0.95,NOW,{}", rest.join(",")),
        _ if line.starts_with("Start: ") => "Start: NOW".to_owned(),
        _ => match line.split(' ').collect::<Vec<_>>()[..] {
            // Of the raw form, which counts microseconds.
            ["p", hop, us, seq] if us.parse::<i64>().is_ok() => {
                let us = us.parse::<i64>().unwrap_or_default();
                format!("p {hop} {}.{:03} {seq}", us / 1000, us % 1000)
            }
            _ => match line
                .split_once("\": ")
                .map(|(key, value)| (key, value.trim_end_matches(','), value.ends_with(',')))
            {
                // JSON has five digits: of a time with three before the point the last is less than a clock tells.
                Some((key, value, more)) if value.contains('.') && value.parse::<f64>().is_ok() => {
                    let value: f64 = value.parse().unwrap_or_default();
                    let digits = if value < 100.0 { 3 } else { 1 };
                    format!("{key}\": {value:.digits$}{}", if more { "," } else { "" })
                }
                _ => line.to_owned(),
            },
        },
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The text with each time as a blank, and the times in microseconds.
fn apart(text: &str) -> (String, Vec<i64>) {
    let (mut form, mut times) = (String::new(), Vec::new());
    let mut rest = text;
    // A number with three decimals.
    while let Some(dot) = rest.find('.') {
        let before = rest[..dot].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
        let after = rest[dot + 1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - dot - 1);
        let part_of_more = rest[..before].ends_with('.') || rest[dot + 1 + after..].starts_with('.');
        if after == 3 && before < dot && !part_of_more {
            let whole: i64 = rest[before..dot].parse().unwrap_or(i64::MAX / 2000);
            times.push(whole * 1000 + rest[dot + 1..dot + 4].parse::<i64>().unwrap_or(0));
            form.push_str(&rest[..before]);
            form.push('T');
        } else {
            form.push_str(&rest[..dot + 1 + after]);
        }
        rest = &rest[dot + 1 + after..];
    }
    form.push_str(rest);
    (form, times)
}

/// What differs between what was recorded and what is printed here.
pub(crate) fn differences(recorded: &str, here: &str) -> Option<String> {
    let ((form, times), (form_here, times_here)) = (apart(&undated(recorded)), apart(&undated(here)));
    let near = |(a, b): (&i64, &i64)| {
        let most = match *a {
            // A system call takes a microsecond there.
            ..20 => 20,
            20..=1_000_000 => 2,
            _ => 130_000,
        };
        (a - b).abs() <= most
    };
    if form == form_here && times.iter().zip(&times_here).all(near) {
        return None;
    }
    Some(format!("{here}\n-- recorded:\n{recorded}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The network of a case.
fn network(case: &Value) -> (World, BTreeMap<String, HostId>) {
    let mut world = World::new(case["seed"].as_u64().unwrap_or(1));
    let mut hosts = BTreeMap::new();
    for name in case["names"].as_array().unwrap() {
        hosts.insert(text(name).to_owned(), world.add_host(text(name), Kernel::V6_12));
    }
    for (n, link) in case["links"].as_array().unwrap().iter().enumerate() {
        let end = |i: usize| End::new(hosts[text(&link["ends"][i][0])], text(&link["ends"][i][1]));
        let delay = Span::from_us(link["delay_us"].as_i64().unwrap());
        world.add_link(LinkSpec::new(end(0), end(1), None, delay)).unwrap();
        for i in 0..2 {
            let device = text(&link["ends"][i][1]);
            let line = format!("ip link set {device} address 02:00:00:00:00:{:02x}", 2 * n + i + 1);
            assert_eq!(world.exec(hosts[text(&link["ends"][i][0])], &line).status, 0, "{line}");
        }
    }
    for (name, host) in &hosts {
        for line in case["commands"][name].as_array().unwrap() {
            let said = world.exec(*host, text(line));
            assert_eq!(said.status, 0, "{name}: {}: {}", text(line), said.stderr);
        }
    }
    for line in ["iperf3 -s", "iperf -s -u", "iperf -s -u -V"] {
        world.add_app(hosts["b"], line, Time::ZERO);
    }
    (world, hosts)
}

/// Makes the runs of a recording again; at least so many are compared.
pub(crate) fn check(file: &str, least: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/traceroute").join(file);
    let path = std::env::var_os("PENSTOCK_TRACES").map_or(path, Into::into);
    let all = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut same, mut wrong) = (0, Vec::new());
    for line in all.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (mut world, hosts) = network(&case);
        let runs = case["runs"].as_array().unwrap();
        let mut apps = Vec::new();
        for run in runs {
            let line = text(&run["run"]);
            apps.push(match apps.last() {
                None => world.add_app(hosts["a"], line, Time::from_ns(4_000_000_000)),
                Some(before) => world.add_app_after(hosts["a"], line, *before, Span::from_secs(25)),
            });
        }
        let results = world.run(Time::from_ns(1_500_000_000_000));
        for (run, app) in runs.iter().zip(apps) {
            let app = &results.apps[app.0 as usize];
            let recorded = format!("{}{}", text(&run["out"]), text(&run["err"]));
            let status = run["status"].as_i64().unwrap();
            let differs = differences(&recorded, &app.output);
            if differs.is_none() && app.exit.map(i64::from) == Some(status) {
                same += 1;
                continue;
            }
            let differs = differs.unwrap_or_default();
            wrong.push(format!(
                "{}: {}: {status} {:?}\n{differs}",
                case["seed"],
                text(&run["run"]),
                app.exit
            ));
        }
        assert_eq!(world.miscounts(), Vec::<String>::new(), "{}", case["seed"]);
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), wrong.len() + same, wrong.join("\n\n"));
    assert!(same >= least, "{same}");
}
