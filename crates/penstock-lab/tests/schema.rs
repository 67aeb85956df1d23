//! The schema of experiment files: it is that of the code, it takes what the reader takes, it refuses wrong keys and kinds as the reader does.

use penstock_lab::experiment::{self, Form, Kind};
use penstock_model::Diagnostic;
use regex_lite::Regex;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// As much of JSON schema as ours is written in; any other word ends the test. The page's tests hold a whole validator against it.
struct Schema {
    root: Value,
    patterns: RefCell<BTreeMap<String, Regex>>,
}

impl Schema {
    fn new(root: Value) -> Schema {
        Schema { root, patterns: RefCell::default() }
    }
    /// What is wrong with a value.
    fn fault(&self, value: &Value) -> Option<String> {
        self.check(&self.root, value, "").err()
    }
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let fault = |what: &str| Err(format!("{at}: {value}: {what}"));
        let Some(words) = schema.as_object() else {
            return if schema == &Value::Bool(true) { Ok(()) } else { fault("nothing may stand here") };
        };
        if let Some(path) = schema["$ref"].as_str() {
            return self.check(self.root.pointer(path.trim_start_matches('#')).unwrap(), value, at);
        }
        for (word, wanted) in words {
            let ok = match word.as_str() {
                "$schema" | "$id" | "title" | "description" | "default" | "examples" | "definitions" => true,
                "type" => {
                    let is = |name: &Value| match name.as_str().unwrap() {
                        "string" => value.is_string(),
                        "boolean" => value.is_boolean(),
                        "integer" => value.is_i64() || value.is_u64(),
                        "number" => value.is_number(),
                        "array" => value.is_array(),
                        "object" => value.is_object(),
                        other => panic!("type {other}"),
                    };
                    wanted.as_array().map_or_else(|| is(wanted), |all| all.iter().any(is))
                }
                "enum" => wanted.as_array().unwrap().contains(value),
                "const" => wanted == value,
                "minimum" => value.as_f64().is_none_or(|n| n >= wanted.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|n| n <= wanted.as_f64().unwrap()),
                "pattern" => value.as_str().is_none_or(|text| self.fits(wanted.as_str().unwrap(), text)),
                "anyOf" => wanted.as_array().unwrap().iter().any(|one| self.check(one, value, at).is_ok()),
                "allOf" => wanted.as_array().unwrap().iter().all(|one| self.check(one, value, at).is_ok()),
                "items" => {
                    for (n, one) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(wanted, one, &format!("{at}/{n}"))?;
                    }
                    true
                }
                "required" => {
                    let has = |key: &Value| value.get(key.as_str().unwrap()).is_some();
                    !value.is_object() || wanted.as_array().unwrap().iter().all(has)
                }
                "properties" => {
                    for (key, one) in value.as_object().into_iter().flatten() {
                        if let Some(wanted) = wanted.get(key) {
                            self.check(wanted, one, &format!("{at}/{key}"))?;
                        }
                    }
                    true
                }
                "additionalProperties" => {
                    let own = |key: &str| schema["properties"].get(key).is_some();
                    for (key, one) in value.as_object().into_iter().flatten().filter(|(key, _)| !own(key)) {
                        self.check(wanted, one, &format!("{at}/{key}"))?;
                    }
                    true
                }
                other => panic!("the schema has a word that this test does not know: {other}"),
            };
            if !ok {
                return fault(word);
            }
        }
        Ok(())
    }
    fn fits(&self, pattern: &str, text: &str) -> bool {
        let mut all = self.patterns.borrow_mut();
        all.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).unwrap()).is_match(text)
    }
}

fn json(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    serde_json::to_value(table).unwrap()
}

fn read(text: &str) -> Result<(), Vec<Diagnostic>> {
    experiment::parse_with(text, "x.toml", &|name| Err(format!("{name} is not here"))).map(drop)
}

/// All forms, by name.
fn forms() -> BTreeMap<&'static str, &'static Form> {
    fn of_kind(kind: &'static Kind, all: &mut BTreeMap<&'static str, &'static Form>) {
        match kind {
            Kind::Table(form) | Kind::Named(form) => of(form, all),
            Kind::List(kind) | Kind::Few(kind) => of_kind(kind, all),
            Kind::Any(kinds) => kinds.iter().for_each(|kind| of_kind(kind, all)),
            _ => {}
        }
    }
    fn of(form: &'static Form, all: &mut BTreeMap<&'static str, &'static Form>) {
        if all.insert(form.name, form).is_none() {
            form.keys.iter().map(|k| &k.kind).chain(form.others).for_each(|kind| of_kind(kind, all));
        }
    }
    let mut all = BTreeMap::new();
    of(experiment::form(), &mut all);
    all
}

#[test]
fn the_page_is_that_of_the_code() {
    let text = serde_json::to_string_pretty(&experiment::schema()).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiment.schema.json");
    if std::env::var_os("PENSTOCK_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "docs/experiment.schema.json is not what the code says: PENSTOCK_BLESS=1 cargo test -p penstock-lab schema::"
    );
}

fn below(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            below(&path, out);
        } else if path.extension().is_some_and(|e| e == "toml") {
            out.push(path);
        }
    }
}

/// Every example, every file of a study, and the same with one key of a table misspelt.
#[test]
fn experiments_validate_and_misspelt_ones_do_not() {
    let schema = Schema::new(experiment::schema());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    below(&root.join("examples"), &mut files);
    below(&root.join("crates/penstock-study/studies"), &mut files);
    let (mut valid, mut misspelt) = (0, 0);
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        // Studies have lists of their own beside their experiments.
        if experiment::load(path).is_err() {
            assert!(!path.starts_with(root.join("examples")), "{}", path.display());
            continue;
        }
        let value = json(&text);
        assert_eq!(schema.fault(&value), None, "{}", path.display());
        valid += 1;
        let lists: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        for list in lists {
            let mut wrong = value.clone();
            let was = wrong.as_object_mut().unwrap().remove(&list).unwrap();
            wrong[format!("{list}x")] = was;
            assert!(schema.fault(&wrong).is_some(), "{}: {list}x", path.display());
            let Some(keys) = value[&list][0].as_object() else { continue };
            for key in keys.keys() {
                let mut wrong = value.clone();
                let table = wrong[&list][0].as_object_mut().unwrap();
                let was = table.remove(key).unwrap();
                table.insert(format!("{key}x"), was);
                assert!(schema.fault(&wrong).is_some(), "{}: {list}.{key}x", path.display());
                misspelt += 1;
            }
        }
    }
    assert!(valid > 150 && misspelt > 500, "{valid} experiments, {misspelt} misspelt keys");
}

const HOSTS: &str = "[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n";
const LINK: &str = "[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"8mbit\"\n";
const CELL: &str = "[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\n";
const FLOW: &str = "[[flow]]\nfrom = \"a\"\nto = \"b\"\n";

/// An experiment with a table of a form: what stands before its keys and behind them, the keys that it has in any case, whether it stands in
/// braces.
fn around(form: &str) -> (String, &'static [(&'static str, &'static str)], String) {
    let whole = |head: &str| (format!("{HOSTS}{LINK}{head}\n"), String::new());
    let braces = |before: &str| (format!("{HOSTS}{before}"), " }\n".to_owned());
    let ((before, after), keys): (_, &[(&str, &str)]) = match form {
        "experiment" => ((String::new(), format!("{HOSTS}{LINK}")), &[]),
        "host" => ((format!("{HOSTS}{LINK}[host.c]\n"), String::new()), &[("eth0", "\"10.0.0.3/24\"")]),
        "devices" => ((format!("{HOSTS}{LINK}[host.c.device]\n"), String::new()), &[]),
        "switches" => ((format!("{HOSTS}{LINK}[switch]\n"), String::new()), &[]),
        "env" => ((format!("{HOSTS}{LINK}[host.c]\nsetup = \"true\"\n[host.c.env]\n"), String::new()), &[]),
        "files" => ((format!("{HOSTS}{LINK}[host.c.files]\n"), String::new()), &[]),
        "set" => ((format!("{HOSTS}{LINK}[sweep.set]\n"), String::new()), &[]),
        "device" => (braces("[host.c]\neth0 = { "), &[("address", "\"10.0.0.3/24\"")]),
        "cost" => (braces("[host.c]\ncost = { "), &[("packet", "\"20us\"")]),
        "times" => (braces("[host.c]\ncost = { packet = { "), &[]),
        "pause" => (braces("[host.c]\ncost = { pause = { "), &[("at", "\"1s\""), ("lasts", "\"1ms\"")]),
        "switch" => {
            ((format!("{HOSTS}[switch.s]\n"), String::new()), &[("ports", "[\"a:eth0\", \"b:eth0\"]")])
        }
        "link" => ((format!("{HOSTS}[[link]]\n"), String::new()), &[("ends", "[\"a:eth0\", \"b:eth0\"]")]),
        "end" => (braces("[[link]]\nrate = \"8mbit\"\nends = [\"a:eth0\", { "), &[("end", "\"b:eth0\"")]),
        "down" => (braces(&format!("{LINK}down = {{ ")), &[("from", "\"1ms\""), ("to", "\"2s\"")]),
        "queue" => (braces(&format!("{LINK}queue = {{ ")), &[("kind", "\"ns2_red\"")]),
        "rate_step" => (braces(&format!("{CELL}rate = [{{ ")), &[("at", "\"0s\""), ("value", "\"8mbit\"")]),
        "delay_step" => (braces(&format!("{LINK}delay = [{{ ")), &[("at", "\"0s\""), ("value", "\"8ms\"")]),
        "loss_step" => (braces(&format!("{LINK}loss = [{{ ")), &[("at", "\"0s\""), ("value", "\"8%\"")]),
        "rate_change" => (braces(&format!("{CELL}rate = {{ ")), &[]),
        "delay_change" => (braces(&format!("{LINK}delay = {{ ")), &[]),
        "loss_change" => (braces(&format!("{LINK}loss = {{ ")), &[]),
        // The first is one to wait for.
        "app" => (
            whole("[[app]]\non = \"b\"\nrun = \"iperf -s\"\nname = \"abc\"\n[[app]]"),
            &[("on", "\"a\""), ("run", "\"ping b\"")],
        ),
        "flow" => (whole("[[flow]]"), &[("from", "\"a\""), ("to", "\"b\""), ("load", "\"1mbit\"")]),
        "load" => (braces(&format!("{LINK}{FLOW}load = {{ ")), &[]),
        "sizes" => (braces(&format!("{LINK}{FLOW}load = {{ gap = \"20ms\", size = {{ ")), &[]),
        "tcp" => (braces(&format!("{LINK}{FLOW}load = \"greedy\"\ntcp = {{ ")), &[]),
        "txtime" => (
            braces(&format!("{LINK}{FLOW}udp = true\nload = \"1mbit\"\ntxtime = {{ ")),
            &[("after", "\"5ms\"")],
        ),
        "test" => (whole("[[test]]"), &[("from", "\"a\""), ("to", "\"b\""), ("run", "\"rrul\"")]),
        "meter" => (whole("[[meter]]"), &[("on", "\"a:eth0\"")]),
        "capture" => (whole("[[capture]]"), &[("on", "\"a:eth0\"")]),
        "expect" => (whole("[[expect]]"), &[("what", "\"a eth0 drops\""), ("value", "\"<=1\"")]),
        "sweep" => (whole("[sweep]"), &[("set", "{ seed = [1, 2] }")]),
        other => panic!("where does {other} stand?"),
    };
    let mut after = after;
    match form {
        "pause" | "sizes" | "times" => after = " } }\n".to_owned(),
        "end" => after = " }]\n".to_owned(),
        _ if form.ends_with("_step") => after = " }]\n".to_owned(),
        _ => {}
    }
    (before, keys, after)
}

/// What a key needs beside it to be read.
fn beside(form: &str, key: &str) -> &'static [(&'static str, &'static str)] {
    match (form, key) {
        ("host", "clock" | "hz" | "mhz") => &[("kernel", "\"2.2\"")],
        ("host", "env") => &[("setup", "\"true\"")],
        ("host", "processor") => &[("cost", "\"20us\"")],
        ("times", "from") => &[("to", "\"900us\"")],
        ("sizes", "from") => &[("to", "900")],
        ("sizes", "to") => &[("from", "1")],
        ("times", "to") => &[("from", "\"0s\"")],
        ("times", "most") => &[("mean", "\"1us\""), ("shape", "1.5")],
        ("times", "shape" | "deviation") => &[("mean", "\"1us\"")],
        ("sizes", "most") => &[("mean", "100"), ("shape", "1.5")],
        ("sizes", "shape" | "deviation") => &[("mean", "100")],
        ("end", "tx_frames" | "bql") => &[("ring", "64")],
        ("rate_change", "from" | "to" | "every") => &[("ramp", "[\"8mbit\", \"4mbit\"]")],
        ("delay_change", "from" | "to" | "every") => &[("ramp", "[\"8ms\", \"4ms\"]")],
        ("loss_change", "from" | "to" | "every") => &[("ramp", "[\"8%\", \"4%\"]")],
        ("rate_change", "period") => &[("sine", "[\"8mbit\", \"4mbit\"]")],
        ("delay_change", "period") => &[("sine", "[\"8ms\", \"4ms\"]")],
        ("loss_change", "period") => &[("sine", "[\"8%\", \"4%\"]")],
        (_, "sine") => &[("period", "\"10s\"")],
        (_, "steps") => &[("every", "\"1s\"")],
        ("queue", "minq") => &[("kind", "\"fred\"")],
        ("queue", "target_rtt" | "unresponsive_test" | "unresponsive_penalty" | "noidle") => {
            &[("kind", "\"red_pd\"")]
        }
        ("flow", "trace" | "txtime") => &[("udp", "true")],
        ("load", "gap") => &[("size", "160")],
        ("load", "size") => &[("gap", "\"20ms\"")],
        ("load", "on") => &[("size", "160"), ("gap", "\"20ms\""), ("off", "\"1s\"")],
        ("load", "off") => &[("size", "160"), ("gap", "\"20ms\""), ("on", "\"1s\"")],
        ("load", "frames") => &[("size", "429")],
        ("load", "frame") => &[("frames", "1000"), ("size", "429")],
        ("load", "think") => &[("pages", "\"12k\"")],
        ("load", "arrivals") => &[("bytes", "\"12k\"")],
        ("load", "shape") => &[("arrivals", "\"100ms\""), ("bytes", "\"12k\"")],
        (
            "tcp",
            "window" | "tick" | "initial_rto" | "max_rto" | "delayed_ack" | "limited_transmit" | "impatient",
        ) => &[("profile", "\"ns-2\"")],
        ("meter", "pbs") => {
            &[("kind", "\"trtcm\""), ("cir", "\"1mbit\""), ("pir", "\"2mbit\""), ("cbs", "\"10k\"")]
        }
        ("meter", "pir") => {
            &[("kind", "\"trtcm\""), ("cir", "\"8kbit\""), ("cbs", "\"10k\""), ("pbs", "\"20k\"")]
        }
        ("meter", "window") => &[("kind", "\"tsw\""), ("cir", "\"1mbit\""), ("pir", "\"2mbit\"")],
        ("meter", "cir") => &[("kind", "\"srtcm\""), ("cbs", "\"10k\""), ("ebs", "\"10k\"")],
        ("meter", "cbs") => &[("kind", "\"srtcm\""), ("cir", "\"1mbit\""), ("ebs", "\"10k\"")],
        ("meter", "ebs") => &[("kind", "\"srtcm\""), ("cir", "\"1mbit\""), ("cbs", "\"10k\"")],
        ("meter", _) => {
            &[("kind", "\"srtcm\""), ("cir", "\"1mbit\""), ("cbs", "\"10k\""), ("ebs", "\"10k\"")]
        }
        _ => &[],
    }
}

/// An experiment in which this key of this form has this value.
fn with(form: &str, key: &str, value: &str) -> String {
    let (mut before, always, after) = around(form);
    if (form, key) == ("load", "echo") {
        before = before.replace(FLOW, &format!("{FLOW}udp = true\n"));
    }
    let more = beside(form, key);
    let mut lines: Vec<String> = Vec::new();
    for (name, text) in always.iter().filter(|(name, _)| !more.iter().any(|(n, _)| n == name)).chain(more) {
        if *name != key {
            lines.push(format!("{name} = {text}"));
        }
    }
    lines.push(format!("{key} = {value}"));
    let inline = after.contains('}');
    format!(
        "{before}{}{}{after}",
        lines.join(if inline { ", " } else { "\n" }),
        if inline { "" } else { "\n" }
    )
}

const VALUES: [&str; 50] = [
    "true",
    "false",
    "0",
    "1",
    "5",
    "-1",
    "1.5",
    "0.5",
    "100",
    "65536",
    "5000000000",
    "6.12",
    "\"\"",
    "\"abc\"",
    "\"10mbit\"",
    "\"10MBIT\"",
    "\"10Mbps\"",
    "\"1e3kbit\"",
    "\"0bit\"",
    "\"10\"",
    "\"5ms\"",
    "\"5 ms\"",
    "\"1Sec\"",
    "\"20usecs\"",
    "\"0\"",
    "\"inf\"",
    "\"nan\"",
    "\"15k\"",
    "\"15KB\"",
    "\".5mb\"",
    "\"1%\"",
    "\"150%\"",
    "\"a\"",
    "\"b:eth0\"",
    "\"10.0.0.9/24\"",
    "\"fd00::9/64\"",
    "\"10.0.0.2\"",
    "\"@x\"",
    "\"ef\"",
    "\"0x2e\"",
    "\"2.2\"",
    "[]",
    "\"a eth0 drops\"",
    "\"b\"",
    "[\"8mbit\", \"4mbit\"]",
    "[\"1%\", \"2%\"]",
    "[\"5ms\", \"6ms\"]",
    "[1, 2]",
    "{}",
    "{ zzz = 1 }",
];

/// The reader refuses a value for its kind, not for what it says.
fn of_kind(faults: &[Diagnostic], key: &str) -> bool {
    let kinds = [", not ", "is not a rate", "is not a duration", "is not a size", "is not a probability"];
    faults.iter().any(|f| {
        let about = f
            .message
            .strip_prefix(key)
            .is_some_and(|rest| rest.starts_with(" is ") || rest.starts_with(": "));
        about && kinds.iter().any(|k| f.message.contains(k))
    })
}

/// Every key of every form is read; with any value, what the reader takes the schema takes, and what the reader refuses for its kind the schema refuses.
#[test]
fn the_schema_and_the_reader_agree() {
    let schema = Schema::new(experiment::schema());
    let (mut keys, mut values, mut taken) = (0, 0, 0);
    for (name, form) in forms() {
        for key in form.keys {
            // Their own forms are looked at instead.
            let list = matches!(&key.kind, Kind::List(Kind::Table(_)) | Kind::Named(_));
            if (name == "experiment" && list) || key.name == "each" {
                continue;
            }
            keys += 1;
            let own = key.kind.words().into_iter().take(60);
            let own = own.chain([key.default, key.example].into_iter().flatten().map(str::to_owned));
            let (mut any, mut accepted) = (false, false);
            for value in VALUES.iter().map(|v| (*v).to_owned()).chain(own) {
                let text = with(name, key.name, &value);
                let fault = schema.fault(&json(&text));
                match read(&text) {
                    Ok(()) => {
                        accepted = true;
                        assert_eq!(fault, None, "the reader takes\n{text}");
                    }
                    Err(faults) => {
                        any |= fault.is_some();
                        let unknown = format!("has no key \"{}\"", key.name);
                        // A table of devices, or a device that is called so.
                        let any_name = key.name == "device";
                        let told = faults.iter().find(|f| !any_name && f.message.contains(&unknown));
                        assert!(
                            told.is_none(),
                            "{name}.{} is listed and not read: {told:?}\n{text}",
                            key.name
                        );
                        // How much a number is, a pattern does not say.
                        let refused = value != "\"0bit\"" && of_kind(&faults, key.name);
                        assert!(!refused || fault.is_some(), "{faults:?}: the schema takes\n{text}");
                    }
                }
                values += 1;
                taken += usize::from(accepted);
            }
            assert!(any, "the schema takes anything for {name}.{}", key.name);
            let file = matches!(key.name, "base" | "cisco" | "trace" | "replay");
            assert!(accepted || file, "the reader takes nothing for {name}.{}", key.name);
        }
        if form.others.is_none() {
            let text = with(name, "zzz", "1");
            assert!(schema.fault(&json(&text)).is_some(), "a misspelt key of {name}");
            assert!(read(&text).is_err(), "{text}");
        }
    }
    assert!(keys > 190 && values > 9000 && taken > 0, "{keys} keys, {values} values");
}

/// What stands in the schema as a default or an example is one.
#[test]
fn defaults_and_examples_are_of_their_kinds() {
    let schema = Schema::new(experiment::schema());
    for (name, form) in forms() {
        for key in form.keys.iter().filter(|k| k.name != "each") {
            for text in [key.default, key.example].into_iter().flatten() {
                let text = with(name, key.name, text);
                assert_eq!(schema.fault(&json(&text)), None, "{name}.{}\n{text}", key.name);
            }
        }
    }
}

/// Every key stands on the pages, and every word of ns-2's queues in the form.
#[test]
fn the_pages_tell_of_every_key() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = |name: &str| std::fs::read_to_string(docs.join(name)).unwrap();
    let (file, tcp, ns2) = (page("experiment-file.md"), page("tcp.md"), page("kinds/ns2.md"));
    let mut missing = Vec::new();
    for (name, form) in forms() {
        let pages = match name {
            "tcp" => [&tcp, &file],
            "queue" => [&ns2, &file],
            _ => [&file, &file],
        };
        for key in form.keys {
            // As a word in a table or in an example.
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let told = pages.iter().any(|page| page.split(|c| !word(c)).any(|w| w == key.name));
            if !told {
                missing.push(format!("{name}.{}", key.name));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    let form = forms()["queue"];
    for kind in penstock_sched::ns2::KINDS {
        for word in kind.words {
            assert!(form.key(word.name).is_some(), "{} of {}", word.name, kind.spec.id);
        }
    }
    for key in form.keys.iter().filter(|k| k.name != "kind") {
        let known = penstock_sched::ns2::KINDS.iter().any(|k| k.words.iter().any(|w| w.name == key.name));
        assert!(known, "{} is no word of any queue", key.name);
    }
}
