//! A run gives the same bytes by any number of threads.

use penstock_lab::experiment::{self, Experiment, Threads};
use penstock_lab::run::{Options, Outcome, run};
use penstock_model::Span;
use std::path::Path;

fn on(experiment: &Experiment, threads: Threads) -> Outcome {
    let experiment = experiment.clone().on_threads(threads);
    run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .unwrap_or_else(|d| panic!("{}", d[0]))
}
/// Whether the run can be divided; that it is the same then by two threads, three and eight.
fn divided(name: &str, experiment: &Experiment) -> Result<(), String> {
    let one = on(experiment, Threads::One);
    for threads in [2, 3, 8] {
        let several = on(experiment, Threads::Always(threads));
        if let Some(why) = several.one_thread {
            return Err(why);
        }
        assert!(
            one.record.to_json() == several.record.to_json(),
            "{name}, {threads} threads: the record differs"
        );
        assert!(one.series == several.series, "{name}, {threads} threads: the series differ");
        assert_eq!((&one.outputs, &one.tc), (&several.outputs, &several.tc), "{name}, {threads} threads");
        assert!(one.passages == several.passages && one.packet_hops == several.packet_hops, "{name}");
    }
    Ok(())
}
fn example(name: &str) -> Experiment {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    experiment::load(&path).unwrap_or_else(|d| panic!("{}", d[0]))
}

#[test]
fn the_examples_are_the_same_by_any_number_of_threads() {
    let mut ways = Vec::new();
    for name in [
        "diffserv",
        "home-line",
        "home-line-cake",
        "home-line-unshaped",
        "three-users",
        "wan-netem",
        "isp-10k",
    ] {
        let mut experiment = match name {
            // Two hundred subscribers do for this.
            "isp-10k" => small_isp(),
            _ => example(&format!("{name}.toml")),
        };
        experiment.duration = experiment.duration.min(Span::from_secs(5));
        ways.push((name, divided(name, &experiment)));
    }
    let several: Vec<&str> = ways.iter().filter(|(_, way)| way.is_ok()).map(|(name, _)| *name).collect();
    assert_eq!(several, ["diffserv", "isp-10k"], "{ways:?}");
}

/// The provider's example with a fiftieth of its subscribers.
fn small_isp() -> Experiment {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let mut text = read("isp-10k.toml").replace("duration = \"10s\"", "duration = \"3s\"");
    let pairs = [("10000", "200"), ("1001..1500", "21..30"), ("1501..2500", "31..50"), ("1..1000", "1..20")];
    for (many, few) in pairs
        .into_iter()
        .chain([("1..100}", "1..4}"), ("1..20}\"\nto = \"server\"", "1..4}\"\nto = \"server\"")])
    {
        text = text.replace(many, few);
    }
    let script = read("isp-10k.sh").replace("10000", "200");
    let give = |name: &str| match name {
        "isp-10k.sh" => Ok(script.clone()),
        other => Err(format!("there is no {other}")),
    };
    experiment::parse_with(&text, "isp.toml", &give).unwrap_or_else(|d| panic!("{}", d[0]))
}

/// Links of a few hundred meters: cores would wait for each other all the time.
#[test]
fn who_asks_for_threads_in_vain_hears_why() {
    let mut text =
        String::from("duration = \"1s\"\n[host.r]\nsetup = \"sysctl -qw net.ipv4.ip_forward=1\"\n");
    text.push_str("a = \"10.0.1.1/24\"\nb = \"10.0.2.1/24\"\n");
    for (n, name) in [(1, "a"), (2, "b")] {
        text.push_str(&format!("[host.{name}]\neth0 = \"10.0.{n}.2/24\"\nvia = \"10.0.{n}.1\"\n"));
        text.push_str(&format!(
            "[[link]]\nends = [\"{name}:eth0\", \"r:{name}\"]\nrate = \"10mbit\"\ndelay = \"1us\"\n"
        ));
    }
    text.push_str("[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\n");
    let experiment = experiment::parse(&text, "router.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let why = on(&experiment, Threads::Most(2)).one_thread;
    assert_eq!(
        why.as_deref(),
        Some("it would hardly be faster: links that divide it have a delay of only 1000 ns")
    );
    // Divided all the same it gives the same.
    assert_eq!(divided("router", &experiment), Ok(()));
    // A small run takes one thread without a word, where nobody has asked.
    assert_eq!(on(&experiment, Threads::Large(2)).one_thread, None);
}
