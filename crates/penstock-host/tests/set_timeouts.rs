//! Timeouts of sets of ipset, against what Linux 6.12.117 said in exact time.

use penstock_host::{Host, NoFiles};
use penstock_model::{Kernel, Time};

struct Machine {
    host: Host,
    ms: i64,
}

impl Machine {
    fn run(&mut self, line: &str) -> (i32, String) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let said = self.host.command(&words, &mut NoFiles, Time::from_ns(self.ms * 1_000_000));
        (said.status, said.stdout)
    }
    /// The elements, sorted, and how many the kernel counts.
    fn saved(&mut self, ms: i64) -> (Vec<String>, String) {
        self.ms = ms;
        let (_, saved) = self.run("ipset save -s t");
        let (_, header) = self.run("ipset list -t t");
        let entries = header.lines().last().unwrap_or("").to_owned();
        (saved.lines().skip(1).map(str::to_owned).collect(), entries)
    }
}

fn machine() -> Machine {
    Machine { host: Host::new("r", Kernel::V6_12, 1), ms: 0 }
}

#[test]
fn elements_end_when_linux_ends_them() {
    let mut m = machine();
    for line in [
        "ipset create t hash:ip timeout 5 counters initval 0x1",
        "ipset add t 10.0.0.1",
        "ipset add t 10.0.0.2 timeout 0",
        "ipset add t 10.0.0.3 timeout 9",
    ] {
        assert_eq!(m.run(line).0, 0, "{line}");
    }
    let forever = "add t 10.0.0.2 timeout 0 packets 0 bytes 0";
    let of = |last: u8, left: u8| format!("add t 10.0.0.{last} timeout {left} packets 0 bytes 0");
    let lines = |all: &[String]| all.to_vec();
    assert_eq!(
        m.saved(2500),
        (lines(&[of(1, 2), forever.to_owned(), of(3, 6)]), "Number of entries: 3".to_owned())
    );
    assert_eq!(m.run("ipset add t 10.0.0.1 -exist").0, 0);
    assert_eq!(
        m.saved(5700),
        (lines(&[of(1, 1), forever.to_owned(), of(3, 3)]), "Number of entries: 3".to_owned())
    );
    assert_eq!(m.run("ipset test t 10.0.0.1").0, 0);
    assert_eq!(m.saved(7700), (lines(&[forever.to_owned(), of(3, 1)]), "Number of entries: 2".to_owned()));
    assert_eq!(m.run("ipset test t 10.0.0.1").0, 1);
    assert_eq!(m.run("ipset del t 10.0.0.1").0, 1);
    assert_eq!(m.run("ipset add t 10.0.0.1").0, 0);
    assert_eq!(
        m.saved(8950),
        (lines(&[of(1, 3), forever.to_owned(), of(3, 1)]), "Number of entries: 3".to_owned())
    );
    assert_eq!(m.saved(9050), (lines(&[of(1, 3), forever.to_owned()]), "Number of entries: 2".to_owned()));
    assert_eq!(m.saved(49_050), (lines(&[forever.to_owned()]), "Number of entries: 1".to_owned()));
}

/// A set that is full takes another element when one of its own has ended.
#[test]
fn what_has_ended_makes_room() {
    let mut m = machine();
    m.run("ipset create t hash:ip timeout 2 maxelem 2 initval 0x1");
    let added = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|a| m.run(&format!("ipset add t {a}")).0);
    assert_eq!(added, [0, 0, 1]);
    m.ms = 2500;
    assert_eq!(m.run("ipset add t 10.0.0.3").0, 0);
    assert_eq!(m.run("ipset save t").1.lines().last(), Some("add t 10.0.0.3 timeout 2"));
}

/// A bitmap's addresses without a hardware address run out only once it is known; lists lose what has ended.
#[test]
fn bitmaps_and_lists_end_theirs() {
    let mut m = machine();
    for line in [
        "ipset create t bitmap:ip,mac range 10.0.0.0/24 timeout 5",
        "ipset add t 10.0.0.1",
        "ipset add t 10.0.0.2,02:00:00:00:00:01",
        "ipset create l list:set timeout 3",
        "ipset add l t",
    ] {
        assert_eq!(m.run(line).0, 0, "{line}");
    }
    assert_eq!(m.saved(7000).0, ["add t 10.0.0.1 timeout 5"]);
    assert_eq!(m.run("ipset save l").1, "create l list:set size 8 timeout 3\n");
    assert_eq!(m.run("ipset destroy t").0, 0);
}
