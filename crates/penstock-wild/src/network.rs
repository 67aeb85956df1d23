//! Networks of several routers whose links have delays: what one run on several cores can divide.

use crate::experiment::load;
use crate::tc::Kinds;
use crate::{Result, Unstructured, one, tc};
use std::fmt::Write as _;

/// Delays of links, us. Few different ones: frames shall arrive at the same nanosecond.
const DELAYS: [u32; 6] = [0, 100, 500, 1000, 1000, 5000];

/// An experiment file of routers in a chain, one to four of them, with one to four machines each, and flows between any two.
///
/// # Errors
/// Those of [`Unstructured`] (none while it has bytes).
pub fn network(u: &mut Unstructured<'_>) -> Result<String> {
    let mut out = String::new();
    let ms = u.int_in_range(1..=10u32)? * 100;
    let _ = writeln!(out, "duration = \"{ms}ms\"\nseed = {}\nsetup_may_fail = true", u.int_in_range(0..=9)?);
    if u.ratio(1, 4)? {
        let _ = writeln!(out, "sample = \"{}ms\"", u.int_in_range(1..=50)?);
    }
    if u.ratio(1, 4)? {
        let _ = writeln!(out, "warmup = \"{}ms\"", ms / 3);
    }
    let leaves: Vec<u32> =
        (0..u.int_in_range(1..=4)?).map(|_| u.int_in_range(1..=4)).collect::<Result<_>>()?;
    for router in 0..leaves.len() {
        machines(u, router, &leaves, &mut out)?;
    }
    for (router, &count) in leaves.iter().enumerate() {
        for leaf in 0..count {
            link(u, &format!("h{router}x{leaf}:eth0"), &format!("r{router}:leaf{leaf}"), &mut out)?;
        }
        if router + 1 < leaves.len() {
            link(u, &format!("r{router}:next"), &format!("r{}:back", router + 1), &mut out)?;
        }
    }
    let names: Vec<String> =
        leaves.iter().enumerate().flat_map(|(r, &n)| (0..n).map(move |l| format!("h{r}x{l}"))).collect();
    for _ in 0..u.int_in_range(1..=8)? {
        let from = u.choose_index(names.len())?;
        let to = u.choose_index(names.len())?;
        if from == to {
            continue;
        }
        let _ = writeln!(out, "\n[[flow]]\nfrom = \"{}\"\nto = \"{}\"", names[from], names[to]);
        // Several at one instant.
        let start = if u.ratio(1, 3)? { u.int_in_range(0..=ms / 100 - 1)? * 100 } else { 0 };
        let _ = writeln!(out, "at = \"{start}ms\"");
        load(u, &mut out)?;
        if u.ratio(1, 3)? {
            let _ = writeln!(out, "count = {}", u.int_in_range(2..=4)?);
        }
    }
    if names.len() > 1 && u.ratio(1, 3)? {
        let _ = writeln!(
            out,
            "\n[[app]]\non = \"{}\"\nrun = \"ping -c 5 -i 0.1 {}\"",
            names[0],
            names[names.len() - 1]
        );
    }
    Ok(out)
}

/// A router and its machines.
fn machines(u: &mut Unstructured<'_>, router: usize, leaves: &[u32], out: &mut String) -> Result<()> {
    let _ = writeln!(out, "\n[host.r{router}]");
    let mut setup = vec!["sysctl -w net.ipv4.ip_forward=1".to_owned()];
    let mut devices = Vec::new();
    for leaf in 0..leaves[router] {
        let _ = writeln!(out, "leaf{leaf} = \"10.{router}.{leaf}.254/24\"");
        devices.push(format!("leaf{leaf}"));
    }
    if router > 0 {
        let _ = writeln!(out, "back = \"10.200.{}.2/24\"", router - 1);
        devices.push("back".to_owned());
        setup
            .extend((0..router).map(|to| format!("ip route add 10.{to}.0.0/16 via 10.200.{}.1", router - 1)));
    }
    if router + 1 < leaves.len() {
        let _ = writeln!(out, "next = \"10.200.{router}.1/24\"");
        devices.push("next".to_owned());
        let beyond = router + 1..leaves.len();
        setup.extend(beyond.map(|to| format!("ip route add 10.{to}.0.0/16 via 10.200.{router}.2")));
    }
    for dev in &devices {
        if u.ratio(1, 3)? {
            setup.extend(tc::tree(u, dev, Kinds::Simulated)?);
        }
    }
    if u.ratio(1, 8)? {
        let _ = writeln!(out, "cost = \"{}us\"", u.int_in_range(1..=50)?);
    }
    let _ = writeln!(out, "setup = \"\"\"\n{}\n\"\"\"", setup.join("\n"));
    for leaf in 0..leaves[router] {
        let _ = writeln!(
            out,
            "\n[host.h{router}x{leaf}]\neth0 = \"10.{router}.{leaf}.1/24\"\nvia = \"10.{router}.{leaf}.254\""
        );
        if u.ratio(1, 4)? {
            let lines = tc::tree(u, "eth0", Kinds::Simulated)?;
            let _ = writeln!(out, "setup = \"\"\"\n{}\n\"\"\"", lines.join("\n"));
        }
    }
    Ok(())
}

fn link(u: &mut Unstructured<'_>, a: &str, b: &str, out: &mut String) -> Result<()> {
    let _ = writeln!(out, "\n[[link]]\nends = [\"{a}\", \"{b}\"]");
    if u.ratio(7, 8)? {
        let rate = one(u, &["500kbit", "2mbit", "10mbit", "10mbit", "100mbit"])?;
        let _ = writeln!(out, "rate = \"{rate}\"");
    }
    let _ = writeln!(out, "delay = \"{}us\"", u.choose(&DELAYS)?);
    if u.ratio(1, 8)? {
        let _ = writeln!(out, "loss = \"{}%\"", u.int_in_range(1..=10)?);
    }
    if u.ratio(1, 8)? {
        let _ = writeln!(out, "framing = \"{}\"", one(u, &["none", "ip", "ethernet"])?);
    }
    if u.ratio(1, 12)? {
        let _ = writeln!(out, "ecn = \"{}\"", one(u, &["bleach", "unmark"])?);
    }
    Ok(())
}
