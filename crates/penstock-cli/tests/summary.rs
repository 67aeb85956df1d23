//! What `penstock run` prints when a run is over.

use std::path::PathBuf;
use std::process::Command;

/// What it prints of this experiment, and its record.
fn run(name: &str, text: &str) -> (String, serde_json::Value) {
    let folder: PathBuf =
        std::env::temp_dir().join(format!("penstock-summary-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("net.toml"), text).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_penstock"))
        .args(["run", "net.toml"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{shown}{}", String::from_utf8_lossy(&done.stderr));
    let record = std::fs::read_to_string(folder.join("runs/net/record.json")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    (shown, serde_json::from_str(&record).unwrap())
}

/// The drops and marks of an `fq_codel` stand below its class, and are those of the record.
#[test]
fn a_tree_of_classes_shows_what_its_leaves_dropped_and_marked() {
    let (shown, record) = run(
        "tree",
        r#"
duration = "5s"
[host.a]
eth0 = "10.0.0.1/24"
setup = """
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 4mbit
tc class add dev eth0 parent 1:1 classid 1:a htb rate 1mbit ceil 4mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit ceil 4mbit
tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel
tc qdisc add dev eth0 parent 1:a handle a: fq_codel
tc filter add dev eth0 parent 1: u32 match ip dsfield 0xb8 0xfc flowid 1:a
"""
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "100mbit"
delay = "5ms"
[[flow]]
from = "a"
to = "b"
dscp = "EF"
count = 8
load = "greedy"
tcp = { ecn = true }
[[flow]]
from = "a"
to = "b"
count = 8
load = "greedy"
"#,
    );
    let at = shown.lines().position(|l| l.starts_with("  queue")).unwrap();
    let rows: Vec<Vec<&str>> =
        shown.lines().skip(at + 1).take(6).map(|l| l.split_whitespace().collect()).collect();
    let names: Vec<&str> = rows.iter().map(|r| if r[0] == "a" { r[2] } else { r[0] }).collect();
    assert_eq!(names, ["1:", "1:1", "1:a", "a:", "1:20", "20:"], "{shown}");
    let qdisc = |handle: &str, key: &str| {
        let all = record["devices"].as_array().unwrap().iter().flat_map(|d| d["qdiscs"].as_array().unwrap());
        all.clone().find(|q| q["handle"] == handle).unwrap()[key].as_u64()
    };
    // Flows with ECN are marked, the others lose.
    let (marks, drops) = (qdisc("a:", "marked_packets").unwrap(), qdisc("20:", "drops").unwrap());
    assert!(marks > 0 && drops > 0 && qdisc("20:", "marked_packets") == Some(0), "{shown}");
    assert_eq!(qdisc("1:", "marked_packets"), None, "htb counts no marks");
    assert_eq!(rows[3][rows[3].len() - 1], marks.to_string(), "{shown}");
    assert_eq!(rows[5][rows[5].len() - 1], drops.to_string(), "{shown}");
}
