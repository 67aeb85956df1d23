//! Questions about an experiment, and about packets through a device.

use crate::{Faults, fault, said};
use penstock_lab::experiment::{self, Experiment};
use penstock_lab::run::{self, Options};
use penstock_lab::sweep;
use penstock_machine::script::{self, Kept};
use penstock_measure::report::{self, Page};
use penstock_model::{Diagnostic, Kernel, Span};
use penstock_replay::capture::{self, Settings};
use penstock_shell::Script;
use serde::Deserialize;
use serde_json::{Value, json};

/// An experiment with the files it names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    #[serde(rename = "ask")]
    _ask: String,
    /// The experiment's text.
    text: String,
    /// Its file's name.
    #[serde(default = "nameless")]
    name: String,
    /// The files it names, and those that scripts find: path and text. Nothing else is read.
    #[serde(default)]
    files: Vec<(String, String)>,
    /// A seed in place of the file's.
    #[serde(default)]
    seed: Option<u64>,
    /// Samples a curve has at most in the answer; 0: no series.
    #[serde(default = "samples")]
    samples: usize,
}

fn nameless() -> String {
    "experiment.toml".to_owned()
}

fn samples() -> usize {
    400
}

/// A path with its `.` and `..` taken as they stand.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

impl Wanted {
    fn experiment(&self) -> Result<Experiment, Faults> {
        let loader = |name: &str| {
            let found = self.files.iter().find(|(path, _)| plain(path) == plain(name));
            let found = found.map(|(_, text)| text.clone());
            found.ok_or_else(|| "it did not come with the question: add it to the files".to_owned())
        };
        experiment::parse_with(&self.text, &self.name, &loader)
    }
}

/// A link of an experiment that is to be another.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    #[serde(rename = "ask")]
    _ask: String,
    /// The experiment's text, its name and files, as of a run.
    text: String,
    #[serde(default = "nameless")]
    name: String,
    #[serde(default)]
    files: Vec<(String, String)>,
    /// The number of the link among those of the record's `rig`, from 0.
    link: usize,
    /// Keys, and what they become.
    set: Vec<(String, String)>,
}

/// The texts with a link changed: `text` of the experiment and its `files`. What can then not be read is refused.
pub(crate) fn change(wanted: Change) -> Result<Value, Faults> {
    let Change { text, name, files, link, set, .. } = wanted;
    let mut changed = Wanted { _ask: String::new(), text, name, files, seed: None, samples: 0 };
    let experiment = changed.experiment()?;
    let (source, text) = sweep::change_link(&experiment, link, &set).map_err(|fault| vec![fault])?;
    if source == 0 {
        changed.text = text;
    } else {
        let name = plain(&experiment.sources[source].name);
        for (_, old) in changed.files.iter_mut().filter(|(path, _)| plain(path) == name) {
            old.clone_from(&text);
        }
    }
    changed.experiment()?;
    Ok(json!({ "text": changed.text, "files": changed.files }))
}

/// Whether an experiment can be read, and what it is made of.
pub(crate) fn read(wanted: &Wanted) -> Result<Value, Faults> {
    let experiment = wanted.experiment()?;
    let hosts: Vec<&str> = experiment.hosts.iter().map(|h| h.name.as_str()).collect();
    Ok(json!({
        "title": experiment.title, "about": experiment.about, "duration_s": experiment.duration.as_ns() as f64 / 1e9,
        "seed": experiment.seed, "hosts": hosts,
    }))
}

/// Runs it on the simulator. `record` is the text of `record.json`, byte for byte.
pub(crate) fn run(wanted: &Wanted, progress: &mut dyn FnMut(f64)) -> Result<(run::Outcome, Value), Faults> {
    let experiment = wanted.experiment()?;
    let mut warnings = Vec::new();
    let mut warn = |w: &Diagnostic| warnings.push(said(w));
    let mut options = Options { seed: wanted.seed, progress, warn: &mut warn };
    let outcome = run::run(&experiment, &mut options)?;
    let page =
        Page { record: &outcome.record, series: &outcome.series, outputs: &outcome.outputs, tc: &outcome.tc };
    let curve = |c: &penstock_measure::series::Curve| {
        let every = c.points.len().div_ceil(wanted.samples.max(1)).max(1);
        let points: Vec<(f64, f64)> = c.points.iter().step_by(every).copied().collect();
        json!({ "host": c.host, "object": c.object, "metric": c.metric, "points": points })
    };
    let series: Vec<Value> = match wanted.samples {
        0 => Vec::new(),
        _ => outcome.series.curves().iter().map(curve).collect(),
    };
    let tc: Vec<Value> = outcome
        .tc
        .iter()
        .map(|(host, dev, text)| json!({ "host": host, "dev": dev, "text": text }))
        .collect();
    let answer = json!({
        "title": outcome.record.title, "duration_s": outcome.record.duration_s, "record": outcome.record.to_json(),
        "succeeded": outcome.record.succeeded(), "report": report::html(&page), "outputs": outcome.outputs, "warnings": warnings,
        "series": series, "tc": tc, "packet_hops": outcome.packet_hops,
    });
    Ok((outcome, answer))
}

/// Packets through a device.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Packets {
    #[serde(rename = "ask")]
    _ask: String,
    /// A specification with commands, a line and packets; or
    #[serde(default)]
    spec: Option<Value>,
    /// packets as JSON lines, through
    #[serde(default)]
    lines: Option<String>,
    /// this script's
    #[serde(default)]
    text: String,
    /// device.
    #[serde(default)]
    dev: Option<String>,
    /// Rate of the line behind the device.
    #[serde(default)]
    rate: Option<String>,
}

/// How long the last packets are waited for.
const DRAIN: Span = Span::from_secs(60);

/// What becomes of exact packets.
pub(crate) fn replay(packets: &Packets) -> Result<Value, Faults> {
    if let Some(spec) = &packets.spec {
        return penstock_replay::run(spec).map_err(|wrong| vec![wrong]);
    }
    let lines = packets.lines.as_deref().ok_or_else(|| fault("replay needs \"spec\" or \"lines\""))?;
    let traffic = capture::read(lines.as_bytes(), "packets").map_err(|wrong| vec![wrong])?;
    let rate = packets.rate.as_deref().map(crate::rate).transpose()?;
    let script = Script { text: packets.text.clone(), name: "script".to_owned(), ..Script::default() };
    let devices: Vec<&str> = packets.dev.iter().map(String::as_str).collect();
    let mut kept = Kept::default();
    let (host, now, status) =
        script::on_a_fresh_machine(&script, Kernel::default(), &devices, &mut kept).map_err(fault)?;
    if status != 0 {
        return Err(fault(format!(
            "the script ended with status {status}; nothing was replayed\n{}",
            kept.stderr
        )));
    }
    let settings = Settings { dev: packets.dev.clone(), ingress: false, from: None, rate, drain: DRAIN };
    let replay = capture::run(host, now, traffic, settings)?;
    Ok(json!({ "text": replay.text(), "packets": replay.json() }))
}

#[cfg(test)]
mod tests {
    use crate::answer;
    use serde_json::json;

    const FIRST: &str = "title = \"First\"\nduration = \"2s\"\n[host.pc]\neth0 = \"10.0.0.2/24\"\n\
                         setup = \"@shape.sh\"\n[host.server]\neth0 = \"10.0.0.1/24\"\n\
                         [[link]]\nends = [\"pc:eth0\", \"server:eth0\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\n\
                         [[app]]\non = \"pc\"\nrun = \"ping -c 1 server\"\n";

    #[test]
    fn an_experiment_runs_with_the_files_that_came_with_it() {
        let shape = "for d in eth0; do tc qdisc add dev $d root handle 1: sfq; done\n";
        let question = json!({ "ask": "run", "text": FIRST, "name": "lab/first.toml", "files": [["lab/shape.sh", shape]] });
        let mut told = 0.0;
        let answer = answer(&question, &mut |share| told = share).unwrap();
        assert_eq!(
            (told, answer["title"].as_str(), answer["succeeded"].as_bool()),
            (1.0, Some("First"), Some(true))
        );
        assert!(answer["record"].as_str().unwrap().contains("\"kind\": \"sfq\""));
        assert!(answer["report"].as_str().unwrap().starts_with("<!doctype html>"));
        assert!(answer["outputs"][0].as_str().unwrap().contains("1 received"));
    }

    #[test]
    fn a_link_is_changed_and_all_else_stays() {
        let question = json!({
            "ask": "change", "name": "lab/second.toml", "text": "base = \"first.toml\" # the first\n", "files": [["lab/first.toml", FIRST], ["lab/shape.sh", ""]],
            "link": 0, "set": [["rate", "5mbit"], ["loss", "1%"]],
        });
        let changed = answer(&question, &mut |_| {}).unwrap();
        assert_eq!(changed["text"], question["text"]);
        let expected = FIRST
            .replace("rate = \"10mbit\"", "rate = \"5mbit\"")
            .replace("[[link]]", "[[link]]\nloss = \"1%\"");
        assert_eq!(changed["files"][0][1], expected);
        let mut wrong = question.clone();
        wrong["set"] = json!([["rate", "fast"]]);
        assert!(answer(&wrong, &mut |_| {}).unwrap_err()[0].message.contains("is not a rate"));
    }

    #[test]
    fn a_file_that_did_not_come_is_told_with_its_place() {
        let faults = answer(&json!({ "ask": "run", "text": FIRST }), &mut |_| {}).unwrap_err();
        assert!(
            faults[0].line == 5 && faults[0].to_string().contains("did not come with the question"),
            "{}",
            faults[0]
        );
    }

    #[test]
    fn packets_go_through_a_script() {
        let question = json!({
            "ask": "replay", "text": "tc qdisc add dev eth0 root tbf rate 1mbit burst 5k limit 3k\n", "dev": "eth0",
            "lines": "{\"t_ns\":0,\"len\":1000}\n",
        });
        // What a line must hold is told by its reader.
        match answer(&question, &mut |_| {}) {
            Ok(answer) => assert!(answer["text"].as_str().unwrap().contains("eth0")),
            Err(faults) => assert!(!faults[0].message.is_empty()),
        }
    }
}
