//! `examples/home-nat.toml`: a home router translates addresses for TCP and ping, and what it expects comes out.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};
use std::path::Path;

#[test]
fn a_home_router_translates() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/home-nat.toml");
    let experiment = experiment::load(&file).unwrap_or_else(|f| panic!("{}", f[0]));
    let outcome = run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let outcome = outcome.unwrap_or_else(|faults| panic!("{}", faults[0]));
    assert_eq!(outcome.record.expects.len(), 6);
    for expect in &outcome.record.expects {
        assert!(expect.ok, "{} {}: {:?}", expect.what, expect.value, expect.measured);
    }
    // Only the stranger's packets are lost, at the provider, which knows no way to the inside.
    let lost: Vec<_> = outcome.record.drops.iter().map(|d| (d.host.as_str(), d.packets)).collect();
    assert_eq!(lost, [("isp", 2)]);
}
