//! `penstock tune` and `penstock run --junit` as somebody types them.

mod scratch;

use scratch::{Scratch, text};
use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const LINE: &str = "title = \"Line\"\nduration = \"2s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n\
    setup = \"tc qdisc add dev eth0 root tbf rate ${RATE:=9mbit} burst 5k latency 100ms\"\n\
    [host.b]\neth0 = \"10.0.0.2/24\"\n\
    [[link]]\nname = \"up\"\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"2ms\"\n\
    [[flow]]\nname = \"call\"\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = { size = 500, gap = { mean = \"5ms\" } }\n\
    [[expect]]\nwhat = \"call owd p99\"\nvalue = \"<5ms\"\n[[expect]]\nwhat = \"call sent\"\nvalue = \"<3\"\n";

/// A folder with the experiment in it.
fn place(name: &str) -> Scratch {
    let place = Scratch::new(&format!("tune-{name}"));
    fs::write(place.0.join("line.toml"), LINE).unwrap();
    place
}

fn command(place: &Scratch, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.args(words).current_dir(&place.0);
    command
}

fn penstock(place: &Scratch, words: &[&str]) -> Output {
    command(place, words).output().unwrap()
}

const WORDS: [&str; 10] = [
    "tune",
    "line.toml",
    "--set",
    "$RATE=400kbit..1200kbit",
    "--minimize",
    "call owd p99",
    "--goal",
    "call loss < 50%",
    "--points",
    "12",
];

#[test]
fn a_search_ends_with_the_best_and_goes_on_after_a_kill() {
    let place = place("kill");
    let with = |more: &[&'static str]| [&WORDS[..], &["--seeds", "4"], more].concat();
    let done = penstock(&place, &with(&["--out", "straight", "--jobs", "1"]));
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{said}{}", text(&done.stderr));
    for part in [
        "Line: 12 points tried, 4 seeds, 48 runs",
        "host.a.env.RATE = ",
        "minimized  call owd p99",
        "what matters",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let results = || {
        let folders = fs::read_dir(place.0.join("broken/results")).into_iter().flatten().flatten();
        folders.filter_map(|f| fs::read_dir(f.path()).ok()).flatten().count()
    };
    let mut child = command(&place, &with(&["--out", "broken"]))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while results() < 5 && child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(120), "no result comes");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = results();
    assert!(before >= 5, "{before}");
    let done = penstock(&place, &with(&["--out", "broken", "--json"]));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    for name in ["results.parquet", "tune.json", "report.html"] {
        let read = |folder: &str| fs::read(place.0.join(folder).join(name)).unwrap();
        assert_eq!(read("straight"), read("broken"), "{name}");
    }
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&json["best"]["meets"], json["points"].as_array().unwrap().len()), (&true.into(), 12));
    // The faster, the less a packet waits: the rate is what matters.
    let best = json["best"]["set"]["host.a.env.RATE"].as_str().unwrap();
    assert!(best.ends_with("mbit") || best.ends_with("bit"), "{best}");
    assert!(json["sensitivity"][0]["share"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_cannot_be_met_and_what_is_wrong_is_told() {
    let place = place("wrong");
    let few = [
        "tune",
        "line.toml",
        "--set",
        "link.up.delay=1ms,2ms",
        "--minimize",
        "call owd p50",
        "--points",
        "6",
    ];
    let done = penstock(&place, &few);
    let said = text(&done.stdout);
    // The file's own expectations are the goals, and one of them cannot be met.
    assert_eq!(done.status.code(), Some(1), "{said}{}", text(&done.stderr));
    assert!(
        said.contains("No point that was tried meets all goals") && said.contains("call sent <3"),
        "{said}"
    );
    for (words, told) in [
        (&["tune", "line.toml", "--set", "$RATE=1mbit..2mbit"][..], "--maximize <WHAT>"),
        (&["tune", "line.toml", "--maximize", "call goodput"], "nothing is varied"),
        (
            &["tune", "line.toml", "--set", "$RTE=1mbit..2mbit", "--maximize", "call goodput"],
            "no setup has $RTE",
        ),
    ] {
        let done = penstock(&place, words);
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(text(&done.stderr).contains(told), "{words:?}: {}", text(&done.stderr));
    }
}

#[test]
fn expectations_are_test_cases() {
    let place = place("junit");
    let done = penstock(&place, &["run", "line.toml", "-q", "--repeat", "2", "--junit", "out.xml"]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    let xml = fs::read_to_string(place.0.join("out.xml")).unwrap();
    assert!(
        xml.starts_with(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"4\" failures=\"2\" errors=\"0\">"
        ),
        "{xml}"
    );
    assert!(
        xml.contains("<testsuite name=\"Line (seed 2, on sim)\" tests=\"2\" failures=\"1\" errors=\"0\">"),
        "{xml}"
    );
    assert!(xml.contains("<testcase classname=\"line.toml\" name=\"call owd p99 &lt;5ms\"/>"), "{xml}");
    assert!(xml.contains("name=\"call sent &lt;3\"><failure message=\"measured "), "{xml}");
    // What cannot be run is an error.
    fs::write(place.0.join("bad.toml"), LINE.replace("tbf rate", "tbf rat")).unwrap();
    let done = penstock(&place, &["run", "bad.toml", "--junit", "bad.xml"]);
    assert_eq!(done.status.code(), Some(2));
    let xml = fs::read_to_string(place.0.join("bad.xml")).unwrap();
    assert!(xml.contains("errors=\"1\"") && xml.contains("<error message="), "{xml}");
    // And where nothing can be written nothing is run.
    let done = penstock(&place, &["run", "line.toml", "--junit", "none/out.xml"]);
    assert!(done.status.code() == Some(2) && text(&done.stderr).contains("cannot write none/out.xml"));
    assert!(!place.0.join("runs/line").exists() || !place.0.join("runs/line/record.json").exists());
}
