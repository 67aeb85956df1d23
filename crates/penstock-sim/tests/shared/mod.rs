//! What tests of machines with network namespaces share.

use penstock_host::Output;
use penstock_model::Span;
use penstock_sim::{HostId, World};

pub fn run(world: &mut World, host: HostId, lines: &[&str]) {
    for line in lines {
        let said = world.exec(host, line);
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
    }
}
pub fn shown(world: &mut World, host: HostId, line: &str) -> String {
    let Output { stdout, stderr, status, .. } = world.exec(host, line);
    assert_eq!((status, stderr.as_str()), (0, ""), "{line}");
    stdout
}
/// What a program printed by `until`.
pub fn program(world: &mut World, at: HostId, line: &str, until: Span) -> String {
    let start = world.now();
    world.add_app(at, line, start);
    let results = world.run(start + until);
    results.apps.last().unwrap().output.clone()
}
/// The receiver's figure of an iperf3 client, Mbit/s.
pub fn received(output: &str) -> f64 {
    let line = output.lines().rev().find(|l| l.ends_with("receiver")).unwrap_or_else(|| panic!("{output}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|w| w.ends_with("bits/sec")).unwrap();
    let figure: f64 = words[at - 1].parse().unwrap();
    if words[at] == "Gbits/sec" { figure * 1000.0 } else { figure }
}
pub fn space(world: &World, host: HostId, name: &str) -> HostId {
    world.namespaces(host).into_iter().find(|(_, n)| n == name).unwrap().0
}
