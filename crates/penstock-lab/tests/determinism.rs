//! Same file, seed and version: the same bytes, twice in a row and in every build.

use crate::folders;

use folders::{files, scratch};
use penstock_lab::experiment;
use penstock_lab::run::{Folder, Options, Outcome, run};
use std::path::{Path, PathBuf};

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn small(seed: Option<u64>) -> Outcome {
    let text = std::fs::read_to_string(here("small.toml")).unwrap();
    let experiment = experiment::parse(&text, "small.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    run(&experiment, &mut Options { seed, progress: &mut |_| {}, warn: &mut |_| {} })
        .unwrap_or_else(|d| panic!("{}", d[0]))
}

#[test]
fn the_same_run_twice_gives_the_same_bytes() {
    let folder = scratch("twice");
    for name in ["a", "b"] {
        small(None).write(&folder.join(name)).unwrap();
    }
    let (a, b) = (files(&folder.join("a")), files(&folder.join("b")));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in &a {
        assert!(bytes == &b[name], "{} differs", name.display());
    }
    let names: Vec<String> = a.keys().map(|p| p.to_string_lossy().into_owned()).collect();
    for want in ["record.json", "series.parquet", "report.html", "apps/02-desk.txt", "tc/gate-eth0.txt"] {
        assert!(names.iter().any(|n| n == want), "{want} is missing: {names:?}");
    }
    assert!(!names.iter().any(|n| n.starts_with("tc/old")), "Windows has no tc: {names:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(small(None).record.flows, small(Some(12)).record.flows);
    assert_eq!(small(Some(12)).record.seed, 12);
}

/// The record as it was committed: `cargo test` and `cargo test --release` on any machine must all give these bytes.
/// `PENSTOCK_BLESS=1` writes it anew after a change that is meant to change it.
#[test]
fn the_record_is_the_one_that_was_committed() {
    let outcome = small(None);
    let path = here("golden/small.json");
    let record = outcome.record.to_json();
    let series = fnv(&outcome.series.to_parquet().unwrap());
    let printed = fnv(outcome.outputs.join("\n").as_bytes());
    let text = format!("{record}series.parquet {series:016x}\nprinted {printed:016x}\n");
    if std::env::var_os("PENSTOCK_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    let first = golden.lines().zip(text.lines()).find(|(a, b)| a != b);
    assert!(golden == text, "differs from {} first here: {first:?}", path.display());
}

/// FNV-1a, 64 bit.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn a_folder_is_read_back_as_it_was_written() {
    let folder = scratch("back");
    let outcome = small(None);
    let path = folder.join("run");
    outcome.write(&path).unwrap();
    let back = Folder::read(&path).unwrap();
    // Too long to be printed when they differ.
    assert!(back.record == outcome.record, "the record is another");
    assert!(back.series == outcome.series, "the series are others");
    assert!(back.outputs == outcome.outputs && back.tc == outcome.tc, "the texts are others");
    let report = std::fs::read(path.join("report.html")).unwrap();
    penstock_lab::run::write_report(&back).unwrap();
    assert!(std::fs::read(path.join("report.html")).unwrap() == report, "the report is another");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_no_run_folder_is_left_alone() {
    let folder = scratch("alone");
    std::fs::write(folder.join("letter.txt"), "dear").unwrap();
    let outcome = small(None);
    assert!(outcome.write(&folder).unwrap_err().contains("is not a run folder"));
    assert_eq!(files(&folder).len(), 1);
    // An earlier run is replaced whole, but not with what it did not write.
    let run = folder.join("run");
    outcome.write(&run).unwrap();
    let page = std::fs::read(run.join("report.html")).unwrap();
    std::fs::write(run.join("report.html"), "").unwrap();
    std::fs::write(run.join("apps/99-stray.txt"), "").unwrap();
    assert!(outcome.write(&run).unwrap_err().contains("apps/99-stray.txt, which no run wrote"));
    std::fs::remove_file(run.join("apps/99-stray.txt")).unwrap();
    outcome.write(&run).unwrap();
    assert!(std::fs::read(run.join("report.html")).unwrap() == page, "the report is another");
    let rest: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(rest.len(), 2, "{rest:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_refused_command_stops_the_run_with_its_place() {
    let text = "[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = [\"true\", \"tc qdisc add dev eth0 root tbf rate 1mbit\"]\n";
    let experiment = experiment::parse(text, "x.toml").unwrap();
    let Err(faults) = run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
    else {
        panic!("tbf without a burst is refused")
    };
    assert_eq!((faults.len(), faults[0].line), (1, 3));
    assert!(faults[0].message.starts_with("a: "), "{}", faults[0]);
    // What may fail is noted in the record, and the run goes on.
    let experiment =
        experiment::parse(&format!("setup_may_fail = true\nduration = \"10ms\"\n{text}"), "x.toml").unwrap();
    let outcome = run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let record = outcome.unwrap_or_else(|d| panic!("{}", d[0])).record;
    assert_eq!(record.setup_failures.len(), 1);
    assert_eq!(record.setup_failures[0].command, "tc qdisc add dev eth0 root tbf rate 1mbit");
}

#[test]
fn what_is_not_simulated_is_refused_by_name() {
    let host = "duration = \"20ms\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n";
    let mac_push = "setup = [\"tc qdisc add dev eth0 root handle 1: prio\", \
                    \"tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 10.0.0.2 flowid 1:1 action mpls mac_push label 20\"]\n";
    let later = "[[app]]\non = \"a\"\nrun = \"tc qdisc add dev eth0 root atm\"\nat = \"5ms\"\n";
    let sentence = "can be set up and shown here, but what it does to packets is not simulated yet";
    let measured =
        "setup = [\"tc qdisc add dev eth0 root netem delay 10ms 1ms distribution experimental\"]\n";
    let table = "qdisc \"netem with distribution experimental\"";
    for (text, what) in [(mac_push, "action \"mpls mac_push\""), (later, "qdisc \"atm\""), (measured, table)]
    {
        let experiment = experiment::parse(&format!("{host}{text}"), "x.toml").unwrap();
        let faults =
            match run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} }) {
                Err(faults) => faults,
                Ok(_) => panic!("{what} is not simulated"),
            };
        // An action belongs to the machine, not to a device.
        let place = if what.starts_with("action") { "a" } else { "a eth0" };
        assert_eq!(faults[0].message, format!("{place}: {what} {sentence}"));
    }
}

/// Runs beside each other in as many threads: each gives what it gives alone.
#[test]
fn runs_beside_each_other_know_nothing_of_each_other() {
    let bytes = |seed: u64| {
        let outcome = small(Some(seed));
        (outcome.record.to_json(), outcome.series.to_parquet().unwrap(), outcome.outputs, outcome.tc)
    };
    let alone: Vec<_> = (1..=8).map(bytes).collect();
    for jobs in [2, 8] {
        let seeds: Vec<u64> = (1..=8).collect();
        let beside: Vec<_> = seeds
            .chunks(jobs)
            .flat_map(|some| {
                std::thread::scope(|scope| {
                    let all: Vec<_> = some.iter().map(|&seed| scope.spawn(move || bytes(seed))).collect();
                    all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
                })
            })
            .collect();
        assert!(alone == beside, "{jobs} at a time");
    }
}

/// The dice of a setup script are the experiment's seed's; machines throw their own.
#[test]
fn scripts_throw_the_experiments_dice() {
    let setup = "for i in 1; do\n  ip link set dev eth0 alias \"$RANDOM/$SRANDOM/$(shuf -i 1-100000000 -n 1)/$(uuidgen)/$(head -c 8 /dev/urandom | od \
                 -An -tx1 | tr -d ' \\n')\"\ndone\n";
    let text = format!(
        "duration = \"1s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = '''\n{setup}'''\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
         setup = '''\n{setup}'''\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"1mbit\"\n\
         [[app]]\non = \"a\"\nrun = \"ip link show dev eth0\"\n[[app]]\non = \"b\"\nrun = \"ip link show dev eth0\"\n"
    );
    let experiment = experiment::parse(&text, "dice.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let thrown = |seed: Option<u64>| -> Vec<Vec<String>> {
        let outcome = run(&experiment, &mut Options { seed, progress: &mut |_| {}, warn: &mut |_| {} });
        let outcome = outcome.unwrap_or_else(|d| panic!("{}", d[0]));
        let of = |shown: &String| {
            let alias = shown.split("alias ").nth(1).unwrap_or_else(|| panic!("no alias: {shown}"));
            alias.trim().split('/').map(str::to_owned).collect()
        };
        outcome.outputs.iter().map(of).collect()
    };
    let (first, again, other) = (thrown(None), thrown(None), thrown(Some(99)));
    assert_eq!(first, again);
    assert_eq!(thrown(Some(experiment.seed)), first, "--seed is the file's");
    assert_eq!((first.len(), first[0].len()), (2, 5), "{first:?}");
    for (n, (a, b)) in first[0].iter().zip(&first[1]).enumerate() {
        assert!(!a.is_empty() && a != b, "both hosts throw {a} for source {n}");
    }
    for (host, (a, b)) in first.iter().zip(&other).enumerate() {
        assert!(a.iter().zip(b).all(|(a, b)| a != b), "host {host}: {a:?} and {b:?} of another seed");
    }
}
