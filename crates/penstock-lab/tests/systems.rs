//! `examples/systems`: an experiment for each system that the documents of the studies name and no study has. Each says what must come out.

use penstock_lab::experiment::load;
use penstock_lab::run::{Options, Outcome, run};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/systems")
}

fn made(name: &str) -> Outcome {
    let experiment = load(&folder().join(name)).unwrap_or_else(|f| panic!("{name}: {}", f[0]));
    let outcome = run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .unwrap_or_else(|faults| panic!("{name}: {}", faults[0]));
    assert!(!outcome.record.expects.is_empty(), "{name} expects nothing");
    for expect in &outcome.record.expects {
        assert!(expect.ok, "{name}: {} {}: {:?}", expect.what, expect.value, expect.measured);
    }
    outcome
}

/// What an app printed.
fn printed<'a>(outcome: &'a Outcome, app: &str) -> &'a str {
    let at = outcome.record.apps.iter().position(|a| a.name == app).unwrap_or_else(|| panic!("no app {app}"));
    &outcome.outputs[at]
}

macro_rules! comes_out {
    ($($name:ident $file:literal)*) => { $(#[test] fn $name() { made($file); })* };
}

comes_out! {
    cbq_over_atm "cbq-atm.toml"
    a_label_chooses_the_way "labels.toml"
    kinds_of_lines "lines.toml"
    kinds_of_virtualisation "virtualisation.toml"
    machines_on_one_processor "hypervisor.toml"
    mail_comes_at_random "mail.toml"
    films_come_in_pieces "vod.toml"
    shares_follow_the_load "shares-by-load.toml"
}

#[test]
fn shares_are_reserved_and_end_when_nobody_asks() {
    let outcome = made("rsvp.toml");
    let said: Vec<&str> = printed(&outcome, "rsvpd").lines().collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].contains("10.0.1.2 has 100kbit") && said[1].contains("10.0.1.3 has 2300kbit"),
        "{said:?}"
    );
    assert!(said[2].ends_with("10.0.1.3 has nothing any more"), "{said:?}");
}

#[test]
fn a_router_s_console_shows_its_configuration() {
    let outcome = made("ios-or-linux.toml");
    let text = printed(&outcome, "a1 telnet");
    let config = std::fs::read_to_string(folder().join("ios.cfg")).unwrap();
    assert!(
        text.contains("User Access Verification\n\nPassword: \nR1>enable\nPassword: \nR1#show run\n"),
        "{text}"
    );
    for line in config.lines() {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(text.ends_with("R1#exit\nConnection closed by foreign host.\n"), "{text}");
}

#[test]
fn one_stop_stands_on_two_axes() {
    let outcome = made("two-axes.toml");
    let rows = |app: &str| -> Vec<(i64, i64)> {
        let row = |line: &str| {
            line.split_once(' ').and_then(|(t, n)| Some((t.parse().ok()?, n.trim().parse().ok()?)))
        };
        printed(&outcome, app).lines().filter_map(row).collect()
    };
    let (window, bytes) = (rows("window"), rows("bytes"));
    assert_eq!((window.len(), bytes.len()), (30, 30), "{}", printed(&outcome, "bytes"));
    assert!(window.iter().zip(&bytes).all(|(a, b)| a.0 == b.0 + 10), "{window:?} {bytes:?}");
    // After the stop the window is small; what was received does not change while it lasts. Both at their own seconds.
    let first = bytes[0].0 - 1;
    let stopped = |t: i64| window.iter().find(|w| w.0 == t).is_some_and(|w| w.1 <= 2);
    assert!(stopped(first + 10 + 15) && !stopped(first + 10 + 9), "{window:?}");
}

#[test]
fn iperf_prints_the_buffer_that_its_thread_finds() {
    let outcome = made("window.toml");
    assert!(printed(&outcome, "a1 iperf").contains("TCP window size: 16.0 KByte (default)"));
    let late = printed(&outcome, "a2 iperf");
    assert!(late.contains("TCP window size: 27.0 KByte (default)"), "{late}");
}
