//! Experiments of many machines: the example of an ISP's box, smaller, and what a run of many writes.

use penstock_lab::experiment::{self, Experiment};
use penstock_lab::run;
use std::path::Path;

/// `examples/isp-10k.toml` with fewer subscribers.
fn isp(subscribers: u32) -> Experiment {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let fewer = |text: String| {
        let (third, half) = (subscribers / 4, subscribers / 2);
        text.replace("10000", &subscribers.to_string())
            .replace("u{1001..1500}", &format!("u{{{}..{half}}}", third + 1))
            .replace("u{1501..2500}", &format!("u{{{}..{subscribers}}}", half + 1))
            .replace("u{1..1000}", &format!("u{{1..{third}}}"))
            .replace("u{1..100}", "u{1..10}")
            .replace("duration = \"10s\"", "duration = \"3s\"")
            .replace("warmup = \"2s\"", "warmup = \"1s\"")
    };
    let script = fewer(read("isp-10k.sh"));
    let load = |name: &str| match name.ends_with("isp-10k.sh") {
        true => Ok(script.clone()),
        false => Err("not there".to_owned()),
    };
    experiment::parse_with(&fewer(read("isp-10k.toml")), "isp.toml", &load)
        .unwrap_or_else(|d| panic!("{}", d[0]))
}

#[test]
fn an_isps_box_gives_each_line_its_class() {
    let experiment = isp(80);
    assert_eq!((experiment.hosts.len(), experiment.links.len()), (83, 82));
    let outcome =
        run::run(&experiment, &mut run::Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let outcome = outcome.unwrap_or_else(|d| panic!("{}", d[0]));
    for expect in &outcome.record.expects {
        assert!(expect.ok, "{} {}: {:?}", expect.what, expect.value, expect.measured);
    }
    let down = outcome.record.devices.iter().find(|d| d.host == "box" && d.dev == "down").unwrap();
    // Everybody has a class, and who downloads used it: the hashed filters find each by its address.
    assert_eq!(down.classes.iter().filter(|c| c.kind == "htb").count(), 81);
    let sent = |n: u32| down.classes.iter().find(|c| c.classid == format!("1:{n:x}")).map_or(0, |c| c.bytes);
    assert!((1..=20).all(|n| sent(n) > 3_000_000), "{:?}", (1..=20).map(sent).collect::<Vec<_>>());
    assert_eq!(sent(30), 0);
}

#[test]
fn a_run_of_many_machines_writes_no_file_for_an_idle_device_and_a_short_page() {
    let experiment = isp(80);
    let outcome =
        run::run(&experiment, &mut run::Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let outcome = outcome.unwrap_or_else(|d| panic!("{}", d[0]));
    let folder = std::env::temp_dir().join(format!("penstock-many-{}", std::process::id()));
    outcome.write(&folder.join("r")).unwrap();
    // Who neither sends nor gets anything has no file; who does has one.
    let there = |name: &str| folder.join("r/tc").join(name).is_file();
    assert!(there("box-down.txt") && there("access-p5.txt") && there("u5-eth0.txt"));
    assert!(!there("box-up-2.txt"));
    let idle = outcome.record.devices.iter().filter(|d| d.qdiscs.iter().all(|q| q.packets == 0)).count();
    let files = std::fs::read_dir(folder.join("r/tc")).unwrap().count();
    assert_eq!(files, outcome.record.devices.len() - idle);
    // A second run takes the place of the first.
    outcome.write(&folder.join("r")).unwrap();
    let page = std::fs::read_to_string(folder.join("r/report.html")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    // Of 20 pings each of the 2,000 round trips is a point of the picture.
    assert!(page.len() < 420_000, "{}", page.len());
    assert!(page.contains("× 78"), "the picture counts the other lines");
    assert!(page.contains("and 60 more"), "of 80 classes the 20 busiest are listed");
}
