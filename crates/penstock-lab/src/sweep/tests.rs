//! Sweeps of a small experiment: what is checked before the first run, and that results depend on nothing but what was asked.

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const LINE: &str = "title = \"Line\"\nduration = \"400ms\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
    [[link]]\nname = \"up\"\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"1mbit\"\ndelay = \"2ms\"\n\
    [[flow]]\nname = \"call\"\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = { size = 500, gap = { mean = \"10ms\" } }\n\
    [[expect]]\nwhat = \"call owd p99\"\nvalue = \"<5ms\"\n";

fn plan_of(text: &str, wishes: &Wishes) -> Result<Plan, Vec<Diagnostic>> {
    Plan::new(text, "line.toml", &|_| Err("there is no such file".to_owned()), wishes)
}

fn set(words: &[&str]) -> Wishes {
    Wishes { set: words.iter().map(|w| (*w).to_owned()).collect(), ..Wishes::default() }
}

fn refused(text: &str, wishes: &Wishes) -> String {
    let faults = plan_of(text, wishes).expect_err("it has a fault");
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("penstock-sweep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Place(path)
    }
    /// The files of the whole sweep.
    fn files(&self) -> BTreeMap<&'static str, Vec<u8>> {
        ["results.parquet", "sweep.json", "report.html"]
            .map(|n| (n, fs::read(self.0.join(n)).unwrap()))
            .into()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The sweep, and how many runs were made.
fn made(plan: &Plan, place: &Place, jobs: usize, folders: bool) -> (Sweep, usize) {
    let count = AtomicUsize::new(0);
    let making = Making {
        ground: Ground::Sim,
        jobs,
        folder: &place.0,
        folders,
        program: "test",
        told: &|_, made| {
            count.fetch_max(made, Ordering::Relaxed);
        },
        warn: &|_| {},
        prepare: &|e| e,
    };
    let sweep = make(plan, &making).unwrap();
    (sweep, count.into_inner())
}

#[test]
fn a_path_that_leads_nowhere_is_told_before_the_first_run() {
    let check = |words: &[&str], parts: &[&str]| {
        let said = refused(LINE, &set(words));
        for part in parts {
            assert!(said.contains(part), "{words:?}: {said}");
        }
    };
    check(&["link.upp.rate=1mbit"], &["--set:1:6: no link is called \"upp\"", "^^^ did you mean up?"]);
    check(&["link.up.rte=1mbit"], &["has no key \"rte\"", "did you mean \"rate\"?"]);
    check(
        &["link.up.rate=1mbit,2mbt"],
        &["--set:1:20: link.up.rate = 2mbt:", "^^^^ write a number and bit, kbit"],
    );
    check(&["duraton=1s"], &["an experiment has no key \"duraton\"", "did you mean \"duration\"?"]);
    check(&["link.up.rate"], &["there is no \"=\""]);
    check(&["link.up.delay=1ms..5ms"], &["a grid needs values, not a range", "/5 behind it"]);
    check(&["link.up.delay=1ms,,2ms"], &["--set:1:19: a value is empty"]);
    check(&[], &["nothing is varied"]);
    // All faults at once.
    check(&["link.x.rate=1mbit", "flow.call.lod=greedy"], &["no link is called \"x\"", "has no key \"lod\""]);
    let wishes = Wishes { figures: vec!["call owdd".into()], ..set(&["link.up.rate=1mbit"]) };
    assert!(refused(LINE, &wishes).contains("there is no figure \"owdd\""));
    let wishes = Wishes { design: Some("gird".into()), ..set(&["link.up.rate=1mbit"]) };
    assert!(refused(LINE, &wishes).contains("did you mean \"grid\"?"));
}

#[test]
fn the_file_says_what_is_varied() {
    let table = "[sweep]\nseeds = 2\nfigures = [\"call owd p50\"]\n[sweep.set]\n\"link.up.rate\" = [\"1mbit\", \"2mbit\"]\nlink.up.delay = \"1ms..3ms/3\"\nseed = 4\n";
    let plan = plan_of(&format!("{LINE}{table}"), &Wishes::default()).unwrap_or_else(|f| panic!("{}", f[0]));
    assert_eq!((plan.points.len(), plan.seeds.len()), (6, 2));
    assert_eq!(
        plan.point_text(4),
        "seed=4 link.up.delay=2ms link.up.rate=2mbit".split(' ').rev().collect::<Vec<_>>().join(" ")
    );
    let shown: Vec<&str> = plan.figures.iter().filter(|f| f.shown).map(|f| f.what.as_str()).collect();
    assert_eq!(shown, ["call owd p50"]);
    // The command line comes before it.
    let wishes = Wishes { seeds: Some(1), ..set(&["link.up.rate=5mbit"]) };
    let plan = plan_of(&format!("{LINE}{table}"), &wishes).unwrap_or_else(|f| panic!("{}", f[0]));
    assert_eq!((plan.points.len(), plan.seeds.len()), (3, 1));
    let said = refused(
        &format!("{LINE}[sweep]\nseedz = 3\n[sweep.set]\n\"link.up.rat\" = \"1mbit\"\n"),
        &Wishes::default(),
    );
    assert!(
        said.contains("[sweep] has no key \"seedz\"") && said.contains("did you mean \"seeds\"?"),
        "{said}"
    );
    let said = refused(&format!("{LINE}[sweep.set]\n\"link.upp.rate\" = \"1mbit\"\n"), &Wishes::default());
    assert!(said.contains("line.toml:22:1: no link is called \"upp\""), "{said}");
}

#[test]
fn the_same_bytes_on_one_thread_and_two_and_nothing_is_run_twice() {
    let wishes = Wishes { seeds: Some(3), ..set(&["link.up.rate=500kbit,1mbit", "link.up.delay=1ms,5ms"]) };
    let plan = plan_of(LINE, &wishes).unwrap_or_else(|f| panic!("{}", f[0]));
    let (one, two) = (Place::new("one"), Place::new("two"));
    let (sweep, count) = made(&plan, &one, 1, false);
    assert_eq!((count, sweep.runs.len()), (12, 12));
    assert_eq!(made(&plan, &two, 2, false).1, 12);
    assert_eq!(one.files(), two.files());
    // The seeds are the same at every point; more rate, less delay.
    let seeds: Vec<u64> = sweep.runs.iter().map(|r| r.seed).collect();
    assert_eq!(seeds, [1, 2, 3].repeat(4));
    let p99 = |point| sweep.summary(point, 0).unwrap().spread.median;
    assert!(p99(0) > p99(2) && p99(1) > p99(0), "{} {} {}", p99(0), p99(1), p99(2));
    // Again: nothing is run. With some results gone, those are.
    assert_eq!(made(&plan, &one, 2, false).1, 0);
    let mut gone = 0;
    for folder in fs::read_dir(one.0.join("results")).unwrap().take(5) {
        fs::remove_dir_all(folder.unwrap().path()).unwrap();
        gone += 1;
    }
    assert!(made(&plan, &one, 2, false).1 >= gone);
    assert_eq!(one.files(), two.files());
    // More seeds and values: only what is new.
    let more =
        Wishes { seeds: Some(4), ..set(&["link.up.rate=500kbit,1mbit,2mbit", "link.up.delay=1ms,5ms"]) };
    let more = plan_of(LINE, &more).unwrap_or_else(|f| panic!("{}", f[0]));
    assert_eq!(made(&more, &two, 2, false).1, 24 - 12);
}

#[test]
fn a_point_that_cannot_be_run_is_told_and_the_others_are_run() {
    let text = LINE.replace(
        "[host.b]",
        "setup = [\"tc qdisc add dev eth0 root tbf rate 1mbit burst 5k latency 50ms\"]\n[host.b]",
    );
    let setups = "host.a.setup=tc qdisc add dev eth0 root fq_codel,tc qdisc add dev eth0 root tbf rate 1mbit";
    let plan = plan_of(&text, &set(&[setups])).unwrap_or_else(|f| panic!("{}", f[0]));
    let place = Place::new("refused");
    let (sweep, _) = made(&plan, &place, 1, false);
    let (count, first) = sweep.refused().unwrap();
    assert_eq!((count, first.point), (1, 1));
    assert!(first.refused.as_ref().unwrap().contains("the \"burst\" parameter is mandatory"));
    assert!(sweep.summary(0, 0).is_some() && sweep.summary(1, 0).is_none());
    assert_eq!(made(&plan, &place, 1, false).1, 0, "it is known to be refused");
}

#[test]
fn folders_of_runs_lie_by_their_values() {
    let wishes = Wishes { seeds: Some(2), ..set(&["link.up.rate=1mbit,2mbit"]) };
    let plan = plan_of(LINE, &wishes).unwrap_or_else(|f| panic!("{}", f[0]));
    let place = Place::new("folders");
    assert_eq!(made(&plan, &place, 1, false).1, 4);
    // The results are there, the folders are not.
    assert_eq!(made(&plan, &place, 1, true).1, 4);
    let folder = place.0.join("runs/link.up.rate=2mbit/seed=2");
    let record = run::Folder::read(&folder).unwrap().record;
    assert!(record.seed == 2 && record.experiment.contains("rate = \"2mbit\""), "{}", record.experiment);
    assert_eq!(made(&plan, &place, 1, true).1, 0);
    fs::write(folder.join("record.json"), "{}").unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(made(&plan, &place, 1, true).1, 1);
}

#[test]
fn parts_made_elsewhere_are_a_whole() {
    let wishes = Wishes { seeds: Some(3), ..set(&["link.up.rate=500kbit,1mbit", "link.up.delay=1ms,5ms"]) };
    let plan = plan_of(LINE, &wishes).unwrap_or_else(|f| panic!("{}", f[0]));
    let (whole, together) = (Place::new("whole"), Place::new("together"));
    assert_eq!(made(&plan, &whole, 2, false).1, 12);
    let mut runs = 0;
    for own in 1..=5 {
        let part = Place::new(&format!("part-{own}"));
        let making = Making {
            ground: Ground::Sim,
            jobs: 2,
            folder: &part.0,
            folders: false,
            program: "test",
            told: &|_, _| {},
            warn: &|_| {},
            prepare: &|e| e,
        };
        runs += make_part(&plan, &making, (own, 5)).unwrap();
        assert!(!part.0.join("sweep.json").exists());
        for folder in fs::read_dir(part.0.join("results")).unwrap().map(|f| f.unwrap()) {
            let to = together.0.join("results").join(folder.file_name());
            fs::create_dir_all(&to).unwrap();
            for file in fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap()) {
                fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
    }
    assert_eq!(runs, 12);
    assert_eq!(made(&plan, &together, 1, false).1, 0, "all runs were there");
    assert_eq!(whole.files(), together.files());
}

#[test]
fn runs_made_apart_give_the_same_bytes_and_are_not_made_twice() {
    let wishes = Wishes { seeds: Some(3), ..set(&["link.up.rate=1mbit,2mbit", "link.up.delay=1ms,2ms"]) };
    let here = plan_of(LINE, &wishes).unwrap();
    let (one, apart) = (Place::new("whole-here"), Place::new("made-apart"));
    made(&here, &one, 2, false);
    // What another machine has: the text, the wishes and the files, of which there are none.
    let elsewhere = plan_of(LINE, &wishes).unwrap();
    let make = |n| made_apart(&elsewhere, Ground::Sim, n, &mut |_| {}, &mut |_| {});
    {
        let gathering = Gathering::open(&apart.0, Ground::Sim, "test").unwrap();
        assert_eq!(gathering.missing(&here).unwrap(), (0..12).collect::<Vec<_>>());
        for n in [7, 2, 11] {
            gathering.keep(&here, n, &make(n).unwrap()).unwrap();
        }
        assert!(gathering.whole(&here).unwrap_err().contains("run 0 has no result"));
        // A result of another run is none of this one's, nor is half a text.
        assert!(gathering.keep(&here, 0, &make(1).unwrap()).unwrap_err().contains("another run"));
        assert!(gathering.keep(&here, 0, &make(0).unwrap()[..20]).unwrap_err().contains("damaged"));
    }
    let gathering = Gathering::open(&apart.0, Ground::Sim, "test").unwrap();
    let missing = gathering.missing(&here).unwrap();
    assert_eq!(missing, [0, 1, 3, 4, 5, 6, 8, 9, 10]);
    for n in missing.into_iter().rev() {
        gathering.keep(&here, n, &make(n).unwrap()).unwrap();
    }
    gathering.whole(&here).unwrap();
    drop(gathering);
    assert_eq!(apart.files(), one.files());
    // Whoever makes the sweep there finds them all.
    assert_eq!(made(&here, &apart, 1, false).1, 0);
    assert!(make(12).unwrap_err().contains("there are 12"));
}
