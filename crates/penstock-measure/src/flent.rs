//! A run as flent's data file (`.flent.gz`, format 4), so that flent plots it.
//!
//! Each TCP or UDP flow is a series of goodput, each ping and echo probe one of round trips, on the instants of the run's samples.
//! A run of one `[[test]]` has that test's series and name; any other is a `rrul_var`, which takes any number of streams: what the
//! local host sends are uploads, what it receives downloads, what others send among themselves uploads too.

use crate::record::Record;
use crate::series::Series;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The version of flent whose form this is.
const FLENT: &str = "2.3.0";
/// When a run begins, for who wants a date: 2000-01-01T00:00:00Z, as every run begins at the same time.
const EPOCH: f64 = 946_684_800.0;
const DATE: &str = "2000-01-01T00:00:00.000000Z";

/// One series: instants and values.
struct Line {
    name: String,
    kind: Kind,
    /// Its values on the grid.
    values: Vec<Option<f64>>,
    /// Its own points.
    raw: Vec<(f64, f64)>,
    units: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Up,
    Down,
    Ping,
    Other,
}

/// Writes the file. `test`: flent's name of the test that the run is, where it is one.
///
/// # Errors
/// Those of `to`.
pub fn write(record: &Record, series: &Series, test: Option<&str>, to: impl Write) -> io::Result<()> {
    let value = document(record, series, test);
    let mut to = flate2::GzBuilder::new().mtime(0).write(to, flate2::Compression::default());
    serde_json::to_writer(&mut to, &value)?;
    to.finish()?;
    Ok(())
}

fn document(record: &Record, series: &Series, test: Option<&str>) -> Value {
    let (local, remote) = ends(record);
    let grid = grid(series);
    let mut lines = lines(record, series, &grid, &local, test.is_some());
    let own = lines.len();
    for (what, kind) in [("TCP upload", Kind::Up), ("TCP download", Kind::Down)] {
        let of: Vec<usize> =
            (0..own).filter(|&n| lines[n].kind == kind && lines[n].name.starts_with("TCP")).collect();
        if !of.is_empty() {
            let (sum, avg) = (together(&lines, &of, true), together(&lines, &of, false));
            lines.push(derived(format!("{what} sum"), sum, "Mbits/s"));
            lines.push(derived(format!("{what} avg"), avg, "Mbits/s"));
        }
    }
    let tcp: Vec<usize> = (0..own).filter(|&n| lines[n].name.starts_with("TCP")).collect();
    if !tcp.is_empty() {
        let sum = together(&lines, &tcp, true);
        lines.push(derived("TCP totals".to_owned(), sum, "Mbits/s"));
    }
    let pings: Vec<usize> = (0..own).filter(|&n| lines[n].kind == Kind::Ping).collect();
    if !pings.is_empty() {
        let avg = together(&lines, &pings, false);
        lines.push(derived("Ping (ms) avg".to_owned(), avg, "ms"));
    }
    let mut results = Map::new();
    let mut raw = Map::new();
    let mut meta = Map::new();
    for (line, n) in lines.into_iter().zip(0..) {
        if n < own {
            let points = line.raw.iter().map(|&(t, v)| json!({"t": EPOCH + t, "val": v}));
            raw.insert(line.name.clone(), Value::Array(points.collect()));
        }
        meta.insert(line.name.clone(), json!({"UNITS": line.units}));
        results.insert(line.name, json!(line.values));
    }
    let step = grid.get(1).copied().unwrap_or(1.0) - grid.first().copied().unwrap_or(0.0);
    let streams = results.keys().filter(|k| k.contains("::")).count().max(1).to_string();
    json!({
        "version": 4,
        "metadata": {
            "NAME": test.unwrap_or("rrul_var"),
            "TITLE": record.title,
            "NOTE": record.about.clone().unwrap_or_default(),
            "HOST": remote,
            "HOSTS": [remote],
            "LOCAL_HOST": local,
            "TIME": DATE,
            "T0": DATE,
            "LENGTH": record.duration_s,
            "TOTAL_LENGTH": record.duration_s,
            "STEP_SIZE": step,
            "IP_VERSION": 4,
            "FLENT_VERSION": FLENT,
            "DATA_FILENAME": "data.flent.gz",
            "TEST_PARAMETERS": {
                "bidir_streams": "1",
                "upload_streams": streams,
                "download_streams": streams,
                "penstock": record.penstock,
                "seed": record.seed.to_string(),
            },
            "SERIES_META": meta,
        },
        "x_values": grid,
        "results": results,
        "raw_values": raw,
    })
}

/// Who is at home, and to whom that talks: the two ends of the first flow or the first program's machine.
fn ends(record: &Record) -> (String, String) {
    match (record.flows.first(), record.apps.first()) {
        (Some(flow), None) => (flow.from.clone(), flow.to.clone()),
        (Some(flow), Some(app)) if flow.from == app.host => (flow.from.clone(), flow.to.clone()),
        (Some(flow), Some(app)) if flow.to == app.host => (flow.to.clone(), flow.from.clone()),
        (Some(flow), Some(_)) => (flow.from.clone(), flow.to.clone()),
        (None, Some(app)) => (app.host.clone(), String::new()),
        (None, None) => Default::default(),
    }
}

/// The instants of the samples: those of the curve that has most of them, of what is sampled.
fn grid(series: &Series) -> Vec<f64> {
    let sampled = series.curves().iter().filter(|c| c.metric != "rtt_ms");
    let most = sampled.max_by_key(|c| c.points.len());
    let mut grid: Vec<f64> = most.map_or(Vec::new(), |c| c.points.iter().map(|p| p.0).collect());
    grid.dedup();
    grid
}

fn lines(record: &Record, series: &Series, grid: &[f64], local: &str, test: bool) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut add = |name: String, kind: Kind, raw: Vec<(f64, f64)>, units| {
        if raw.is_empty() || lines.iter().any(|l| l.name == name) {
            return;
        }
        let values = grid.iter().map(|&x| at(&raw, x)).collect();
        lines.push(Line { name, kind, values, raw, units });
    };
    for flow in &record.flows {
        let object = format!("flow {}", flow.name);
        let pings = series.points("", &object, "rtt_ms");
        if !pings.is_empty() && flow.app.is_none() {
            let name = if test { flow.name.clone() } else { format!("Ping (ms)::{}", flow.name) };
            add(name, Kind::Ping, pings.to_vec(), "ms");
            continue;
        }
        // The segments of what is received: as many bits a second as the one behind.
        let goodput = series.points("", &object, "goodput_bit_s");
        let mbit = goodput.iter().map(|&(t, v)| (t, v / 1e6)).collect();
        let kind = match (flow.proto.as_str(), flow.to == local) {
            ("tcp" | "udp", true) => Kind::Down,
            ("tcp" | "udp", false) => Kind::Up,
            _ => Kind::Other,
        };
        if kind == Kind::Other {
            continue;
        }
        let what = if kind == Kind::Down { "download" } else { "upload" };
        let name = match (test, flow.proto.as_str()) {
            (true, _) => flow.name.clone(),
            (false, "tcp") => format!("TCP {what}::{}", flow.name),
            (false, _) => format!("UDP {what}::{}", flow.name),
        };
        add(name, kind, mbit, "Mbits/s");
    }
    for app in &record.apps {
        let pings = series.points(&app.host, &app.name, "rtt_ms");
        let name = if test { app.name.clone() } else { format!("Ping (ms)::{}", app.name) };
        add(name, Kind::Ping, pings.to_vec(), "ms");
    }
    lines
}

/// A curve's value at an instant: straight between its points; none before the first and behind the last.
fn at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let behind = points.partition_point(|p| p.0 < x);
    let next = points.get(behind)?;
    if next.0 == x {
        return Some(next.1);
    }
    let last = points.get(behind.checked_sub(1)?)?;
    Some(last.1 + (next.1 - last.1) * (x - last.0) / (next.0 - last.0))
}

/// The sum or the mean of some lines, where any has a value.
fn together(lines: &[Line], of: &[usize], sum: bool) -> Vec<Option<f64>> {
    let len = lines.first().map_or(0, |l| l.values.len());
    let value = |i: usize| {
        let there: Vec<f64> = of.iter().filter_map(|&n| lines[n].values[i]).collect();
        let total: f64 = there.iter().sum();
        match there.len() {
            0 => None,
            n => Some(if sum { total } else { total / n as f64 }),
        }
    };
    (0..len).map(value).collect()
}

fn derived(name: String, values: Vec<Option<f64>>, units: &'static str) -> Line {
    Line { name, kind: Kind::Other, values, raw: Vec::new(), units }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{App, Flow};

    fn flow(name: &str, from: &str, to: &str) -> Flow {
        Flow { name: name.into(), from: from.into(), to: to.into(), proto: "tcp".into(), ..Flow::default() }
    }

    #[test]
    fn streams_and_pings_become_series() {
        let mut series = Series::new();
        for n in 0..5 {
            let t = f64::from(n);
            series.add("", "flow bulk", "goodput_bit_s", t, 4e6);
            series.add("", "flow back", "goodput_bit_s", t, 2e6);
            series.add("a", "a ping", "rtt_ms", t + 0.5, 10.0 + 2.0 * t);
        }
        let record = Record {
            flows: vec![flow("bulk", "a", "b"), flow("back", "b", "a")],
            apps: vec![App { name: "a ping".into(), host: "a".into(), ..App::default() }],
            ..Record::default()
        };
        let made = document(&record, &series, None);
        let results = made["results"].as_object().unwrap();
        let names: Vec<&str> = results.keys().map(String::as_str).collect();
        for name in [
            "Ping (ms) avg",
            "Ping (ms)::a ping",
            "TCP download::back",
            "TCP totals",
            "TCP upload sum",
            "TCP upload::bulk",
        ] {
            assert!(names.contains(&name), "{name} of {names:?}");
        }
        assert_eq!(made["results"]["TCP totals"][3], json!(6.0));
        // Straight between two answers; none before the first.
        assert_eq!(
            (&made["results"]["Ping (ms) avg"][0], &made["results"]["Ping (ms) avg"][1]),
            (&Value::Null, &json!(11.0))
        );
        assert_eq!(made["raw_values"]["Ping (ms)::a ping"][0], json!({"t": EPOCH + 0.5, "val": 10.0}));
        assert_eq!(made["x_values"].as_array().unwrap().len(), 5);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        write(&record, &series, None, &mut one).unwrap();
        write(&record, &series, None, &mut two).unwrap();
        assert_eq!((one == two, &one[..2]), (true, &[0x1f, 0x8b][..]));
    }
}
