//! A search over a small experiment: what is checked before the first run, and that it hangs on nothing but what was asked.

use super::*;
use crate::run::Ground;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

const LINE: &str = "title = \"Line\"\nduration = \"400ms\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n\
    setup = [\"tc qdisc add dev eth0 root tbf rate ${RATE:=10mbit} burst 5k latency 50ms\"]\n\
    [host.b]\neth0 = \"10.0.0.2/24\"\n\
    [[link]]\nname = \"up\"\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"2ms\"\n\
    [[flow]]\nname = \"call\"\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = { size = 500, gap = { mean = \"10ms\" } }\n\
    [[expect]]\nwhat = \"call owd p99\"\nvalue = \"<5ms\"\n";

fn wishes(set: &[&str]) -> Wishes {
    Wishes {
        set: set.iter().map(|s| (*s).to_owned()).collect(),
        objective: "call goodput".into(),
        more: true,
        points: 14,
        ..Wishes::default()
    }
}

fn tuning(text: &str, wishes: &Wishes) -> Result<Tuning, String> {
    Tuning::new(text, "line.toml", &|_| Err("there is no such file".to_owned()), wishes)
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("penstock-tune-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Place(path)
    }
    fn files(&self) -> [Vec<u8>; 3] {
        ["results.parquet", "tune.json", "report.html"].map(|n| fs::read(self.0.join(n)).unwrap())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What was found, and how many runs were made.
fn found(tuning: Tuning, place: &Place, jobs: usize) -> (Tune, usize) {
    let count = AtomicUsize::new(0);
    let making = Making {
        ground: Ground::Sim,
        jobs,
        folder: &place.0,
        folders: false,
        program: "test",
        told: &|_, made| {
            count.fetch_max(made, Ordering::Relaxed);
        },
        warn: &|_| {},
        prepare: &|e| e,
    };
    let tune = tuning.search(&making).unwrap();
    (tune, count.into_inner())
}

#[test]
fn what_is_wrong_is_told_before_the_first_run() {
    let check = |wishes: &Wishes, parts: &[&str]| {
        let said = tuning(LINE, wishes).expect_err("it has a fault");
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    };
    let rate = || wishes(&["$RATE=1mbit..9mbit"]);
    check(&wishes(&[]), &["nothing is varied"]);
    check(&wishes(&["$RAT=1mbit..9mbit"]), &["--set:1:1: no setup has $RAT", "${RAT:=10mbit}"]);
    check(&Wishes { objective: "call goodputt".into(), ..rate() }, &["--maximize:1:1", "\"goodput\"?"]);
    check(&Wishes { goals: vec!["call owd p99".into()], ..rate() }, &["--goal:1:1: there is no <, > or ="]);
    check(
        &Wishes { goals: vec!["call owd p99 < 5mbit".into()], ..rate() },
        &["--goal:1:14", "\"<5mbit\" is not a range"],
    );
    check(&Wishes { goals: vec!["call ow < 5ms".into()], ..rate() }, &["--goal:1:1", "no figure \"ow\""]);
    check(&Wishes { points: 5, ..rate() }, &["--points 5: these parameters need 6 points at least"]);
    check(&wishes(&["link.up.rate=9mbit..1mbit"]), &["9mbit..1mbit is empty"]);
    let two = LINE.replace("[host.b]\n", "[host.b]\nsetup = \"echo $RATE\"\n");
    let said = tuning(&two, &rate()).unwrap_err();
    assert!(said.contains("2 hosts have $RATE") && said.contains("host.a.env.RATE"), "{said}");
}

#[test]
fn the_same_bytes_whatever_the_jobs_and_after_a_break() {
    let asked = Wishes { seeds: Some(2), ..wishes(&["$RATE=100kbit..9mbit/log", "link.up.delay=1ms,3ms"]) };
    let (one, two) = (Place::new("one"), Place::new("two"));
    let (tune, made) = found(tuning(LINE, &asked).unwrap(), &one, 1);
    assert_eq!((made, tune.sweep.runs.len()), (tune.sweep.points.len() * 2, made));
    assert!(tune.sweep.points.len() <= 14 && tune.sweep.points.len() >= 12, "{}", tune.sweep.points.len());
    assert_eq!(found(tuning(LINE, &asked).unwrap(), &two, 3).1, made);
    assert_eq!(one.files(), two.files());
    // Again nothing is run; with some results gone, those are.
    assert_eq!(found(tuning(LINE, &asked).unwrap(), &one, 2).1, 0);
    let gone: Vec<PathBuf> =
        fs::read_dir(one.0.join("results")).unwrap().take(4).map(|f| f.unwrap().path()).collect();
    let lost: usize = gone.iter().map(|f| fs::read_dir(f).unwrap().count()).sum();
    gone.iter().for_each(|f| fs::remove_dir_all(f).unwrap());
    assert_eq!(found(tuning(LINE, &asked).unwrap(), &one, 2).1, lost);
    assert_eq!(one.files(), two.files());
    // Another seed takes another way.
    let other = found(tuning(LINE, &Wishes { seed: Some(9), ..asked }).unwrap(), &Place::new("three"), 2).0;
    assert_ne!(other.sweep.points, tune.sweep.points);
}

#[test]
fn the_variable_reaches_the_setup_and_the_goal_is_kept() {
    // The burst of 5 kB goes out at the rate of the card; with a low rate packets wait.
    let load = LINE.replace("mean = \"10ms\"", "mean = \"2ms\"");
    let place = Place::new("goal");
    let wishes = Wishes {
        objective: "call owd p50".into(),
        more: false,
        goals: vec!["call goodput > 1mbit".into()],
        points: 20,
        ..wishes(&["$RATE=500kbit..9mbit"])
    };
    let (tune, _) = found(tuning(&load, &wishes).unwrap(), &place, 2);
    let best = tune.best.unwrap();
    assert!(tune.meets(best));
    let goodput = tune.sweep.figures.iter().position(|f| f.what == "call goodput").unwrap();
    let least = (0..tune.sweep.points.len())
        .map(|p| (tune.sweep.points[p].numbers[0].unwrap(), tune.sweep.summary(p, goodput).unwrap().mean))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap();
    assert!(least.0 < 1.5e6 && least.1 < 1.4e6, "the setup took the rate: {least:?}");
    assert!(tune.effects()[0].probes.len() <= 2 && !tune.effects()[0].probes.is_empty());
    assert!(tune.sweep.pareto.is_some());
}

#[test]
fn few_values_are_all_tried_and_the_search_ends() {
    let (tune, made) =
        found(tuning(LINE, &wishes(&["link.up.rate=1mbit,2mbit,3mbit"])).unwrap(), &Place::new("few"), 2);
    assert_eq!((made, tune.sweep.points.len()), (3, 3));
    assert_eq!(tune.probes.len(), 2);
}

#[test]
fn a_miss_is_a_share_of_the_bound() {
    let below = Bounds { low: f64::NEG_INFINITY, high: 20.0, above: false, below: true };
    assert_eq!((miss(&below, 25.0), miss(&below, 10.0)), (0.25, -0.5));
    assert!(miss(&below, 20.0) > 0.0);
    let between = Bounds { low: 10.0, high: 20.0, above: false, below: false };
    assert_eq!((miss(&between, 5.0), miss(&between, 20.0)), (0.5, 0.0));
    let none = Bounds { low: 0.0, high: 0.0, above: false, below: false };
    assert_eq!((miss(&none, 0.0), miss(&none, 3.0)), (0.0, 3.0));
    assert_eq!(direction(&below), Some(false));
    assert_eq!(direction(&between), None);
}
