//! Sections 2 to 5: what classes get, TCP beside UDP.

use super::{Evidence, J, Verdict, mbit, together};
use crate::evidence::Missing;

pub(super) fn judge(number: u32, e: &Evidence) -> Verdict {
    match number {
        1 => ct1(e),
        2 => ct2(e),
        3 => ct3(e),
        4 => ct4(e),
        5 => ct5(e),
        6 => ct6(e),
        7 => guaranteed(e, &["300k", "500k", "750k", "1M"], "no lower rate, no loss"),
        8 => ct8(e),
        9 => guaranteed(e, &["300k again", "1M again"], "pass undisturbed"),
        10 => ct10(e),
        11 => ct11(e),
        53 => ct53(e),
        _ => ct55(e),
    }
}

pub(super) fn judge_tcp(number: u32, e: &Evidence) -> Verdict {
    match number {
        18 => ct18(e),
        19 => ct19(e),
        20 => ct20(e),
        21 => ct21(e),
        22 => ct22(e),
        23 => ct23(e),
        24 => ct24(e),
        25 => ct25(e),
        26 => ct26(e),
        27 => ct27(e),
        28 => ct28(e),
        _ => together(&[ct21(e), ct27(e)], "CT21, CT27"),
    }
}

/// Rate of a class between two moments, Mbit/s of frames.
fn class(e: &Evidence, run: &str, classid: &str, from: f64, to: f64) -> Result<f64, Missing> {
    let key = ("router".to_owned(), "eth1".to_owned(), classid.to_owned());
    let samples =
        e.run(run)?.class_rates.get(&key).ok_or_else(|| format!("{run}: there is no class {classid}"))?;
    let picked = samples.iter().filter(|s| s.0 > from && s.0 <= to).map(|s| s.1);
    Ok(crate::evidence::mean(picked) / 1e6)
}

const TREE: &str = "2.1-figure-2";

fn ct1(e: &Evidence) -> Verdict {
    let got = ["1:11", "1:12", "1:20", "1:30"].map(|c| class(e, TREE, c, 2.0, 19.0));
    let [d, e_, b, c] = got;
    let (d, e_, b, c) = (d?, e_?, b?, c?);
    let measured = format!("D {d:.2}, E {e_:.2}, B {b:.2}, C {c:.2} Mbit/s of 2.7, 1.8, 2.7, 1.8");
    let interferer = e.flow("4-figure-4", "interferer")?.loss();
    let ok = d >= 2.7 && e_ >= 1.8 && b >= 2.7 && c >= 1.8 && interferer > 0.0;
    let note = "a class without a rate is the interferer of figure 4, which takes what is left";
    Ok(J::of(ok, "at least its bandwidth, even in congestion", measured, note))
}

fn ct2(e: &Evidence) -> Verdict {
    let d = class(e, TREE, "1:11", 22.0, 39.0)?;
    let (b0, c0) = (class(e, TREE, "1:20", 22.0, 39.0)?, class(e, TREE, "1:30", 22.0, 39.0)?);
    let (b, c) = (class(e, TREE, "1:20", 42.0, 59.0)?, class(e, TREE, "1:30", 42.0, 59.0)?);
    let measured = format!(
        "E idle: D {d:.2} of A's 4.5, B {b0:.2}, C {c0:.2}; D and E idle: B {b:.2}, C {c:.2} Mbit/s, {:.2} to 1",
        b / c
    );
    let ok = d >= 4.5 * 0.95 && b > b0 && c > c0 && b + c > 8.5 && (1.2..1.8).contains(&(b / c));
    Ok(J::of(ok, "D takes what E leaves, B and C what A leaves by their shares of 3 to 2", measured, ""))
}

fn ct3(e: &Evidence) -> Verdict {
    let run = "claim-CT3";
    let (bounded, isolated, sharing) = (
        class(e, run, "1:10", 3.0, 29.0)?,
        class(e, run, "1:22", 3.0, 29.0)?,
        class(e, run, "1:32", 3.0, 29.0)?,
    );
    let exempt = class(e, "claim-CT3-exempt", "1:10", 3.0, 19.0)?;
    let measured = format!(
        "bounded {bounded:.2} of 2; beside an idle isolated class {isolated:.2} of 1 (2 with its parent's), beside an idle one that \
         lends {sharing:.2} of 2 (4); exempt {exempt:.2} Mbit/s of the line's 9.7"
    );
    let ok = bounded <= 2.05
        && bounded > 1.8
        && isolated <= 2.05
        && sharing > 3.6
        && sharing < 4.1
        && exempt > 9.4;
    Ok(J::of(ok, "bounded takes nothing, isolated lends nothing, exempt has no limit", measured, ""))
}

fn ct4(e: &Evidence) -> Verdict {
    let run = e.run(TREE)?;
    let of = |class: &str, what: &str| {
        let key = ("router".to_owned(), "eth1".to_owned(), class.to_owned(), what.to_owned());
        run.class_state.get(&key).map_or(&[][..], Vec::as_slice)
    };
    let changes = of("1:11", "avgidle_ticks").windows(2).filter(|w| w[0].1 != w[1].1).count();
    let delayed = ["1:11", "1:12", "1:20", "1:30"]
        .iter()
        .map(|c| of(c, "undertime_ticks").iter().filter(|p| p.1 > 0.0).count())
        .sum::<usize>();
    let borrowed: f64 = of("1:20", "borrowed_packets").iter().map(|p| p.1).sum();
    let over: f64 = of("1:11", "overlimits").iter().map(|p| p.1).sum();
    let measured = format!(
        "estimator: avgidle changed in {changes} samples; delayer: {delayed} samples with a time to wait for; link-sharing: \
         {borrowed:.0} packets borrowed by 1:20; {over:.0} overlimits of 1:11"
    );
    let ok = changes > 20 && delayed > 0 && borrowed > 0.0;
    Ok(J::of(
        ok,
        "six parts",
        measured,
        "as series of each class in the record; selector and priorities: CT1, CT2",
    ))
}

fn ct5(e: &Evidence) -> Verdict {
    let run = "claim-CT5";
    let count = |class| Ok::<u64, Missing>(e.class(run, "router", "eth1", class)?[1]);
    let (a, d, e_) = (count("1:10")?, count("1:11")?, count("1:12")?);
    let second =
        e.run(run)?.apps.iter().find(|a| a.run.contains("add dev eth1 root")).ok_or("no second root")?;
    let measured = format!(
        "A {a} bytes, D {d} and E {e_}: {}; a second root: exit {}, {}",
        d + e_,
        second.exit,
        second.text.lines().next().unwrap_or_default()
    );
    let ok = a.abs_diff(d + e_) <= 3000 && d > 100_000 && second.exit != 0;
    Ok(J::of(
        ok,
        "inner nodes account, one root a device",
        measured,
        "a packet is accounted for when the next is asked for",
    ))
}

/// What tc's table of transmission times adds to a rate: its cells are of eight bytes, so a frame of 1442 bytes counts as 1440.
const CELLS: f64 = 1442.0 / 1440.0;

fn ct6(e: &Evidence) -> Verdict {
    let (mut worst, mut ok): (f64, bool) = (0.0, true);
    for limit in super::clock::LIMITS {
        let (bits, seconds) = super::clock::left(e, "6.2.1-hz-10000", limit)?;
        let allowed = f64::from(limit) * 1e3 * seconds * CELLS + 8.0 * super::clock::BUCKET;
        ok &= bits <= allowed;
        worst = worst.max(bits / allowed);
    }
    let measured = format!("at most {:.2} % of rate and bucket, in frames, at 10000 Hz", worst * 100.0);
    Ok(J::of(
        ok,
        "limits the maximum",
        measured,
        "over each whole flow, what left after its first packet; tc's table of times has cells of 8 bytes and takes 1442 for 1440",
    ))
}

fn guaranteed(e: &Evidence, flows: &[&str], published: &str) -> Verdict {
    let mut worst: f64 = 0.0;
    let mut counts = Vec::new();
    for flow in flows {
        let f = e.flow("4-figure-4", flow)?;
        worst = worst.max(f.loss());
        counts.push(format!("{flow} {} of {}", f.packets.1, f.packets.0));
    }
    let measured =
        format!("received {}; {} lost", counts.join(", "), if worst == 0.0 { "none" } else { "some" });
    Ok(J::of(worst == 0.0, published, measured, ""))
}

fn ct8(e: &Evidence) -> Verdict {
    let (mut lost, mut others) = (Vec::new(), 0);
    for flow in &e.run("4-figure-4")?.flows {
        if flow.name.starts_with("interferer") {
            lost.push(flow.loss());
        } else {
            others += flow.packets.2;
        }
    }
    let measured =
        format!("interferer {:.0} % and {:.0} %, others {others} packets", lost[0] * 100.0, lost[1] * 100.0);
    Ok(J::of(lost.iter().all(|l| *l > 0.0) && others == 0, "only the 12 Mbps flow loses", measured, ""))
}

fn ct10(e: &Evidence) -> Verdict {
    let (mut lost, mut runs, mut low, mut high) = (0, 0, 1.0f64, 0.0f64);
    for (name, run) in e.runs.iter().filter(|(name, _)| name.starts_with("4-nine-")) {
        runs += 1;
        for flow in run.flows.iter().filter(|f| f.name != "interferer") {
            lost += flow.packets.2;
            let share = flow.frame_bytes.1 as f64 / flow.frame_bytes.0 as f64;
            (low, high) = (low.min(share), high.max(share));
        }
        if e.flow(name, "interferer")?.loss() < 0.1 {
            return Err(format!("{name}: the interferer did not congest the line"));
        }
    }
    let measured = format!(
        "{runs} combinations: {lost} packets of guaranteed flows lost, between {:.2} and {:.2} % of what was sent received",
        low * 100.0,
        high * 100.0
    );
    Ok(J::of(runs == 9 && lost == 0 && low > 0.98, "the same results", measured, ""))
}

fn ct11(e: &Evidence) -> Verdict {
    let mut off = Vec::new();
    for (i, rate) in [300u32, 1000, 2000, 4000].into_iter().enumerate() {
        let from = 10.0 * i as f64;
        let got = class(e, "claim-CT11", &format!("1:{}", 10 + i), from + 2.0, from + 10.0)?;
        off.push((got * 1000.0 / f64::from(rate) - 1.0).abs() * 100.0);
    }
    let cells: Vec<String> = off.iter().map(|o| format!("{o:.1}")).collect();
    let measured =
        format!("off its rate by {} % at 0.3, 1, 2, 4 Mbit/s (bounded, 100 Hz, jiffies)", cells.join(", "));
    Ok(J::of(
        off.windows(2).all(|w| w[1] > w[0]),
        "well mainly at low rates",
        measured,
        "each more than the one before; with a bandwidth of 10Mbit in place of 100Mbit it is so",
    ))
}

fn ct53(e: &Evidence) -> Verdict {
    let (borrows, bounded) =
        (mbit(e, "claim-CT53", "borrows", 3.0, 19.0)?, mbit(e, "claim-CT53", "bounded", 3.0, 19.0)?);
    let measured = format!("both of 1 Mbit/s: {borrows:.2} Mbit/s, bounded {bounded:.2}");
    Ok(J::of(borrows > 3.8 && bounded < 1.05, "not held down while bandwidth is free", measured, ""))
}

fn ct55(e: &Evidence) -> Verdict {
    let mut wrong = 0;
    let mut cells = Vec::new();
    for (flow, class) in [("to 1:11", "1:11"), ("to 1:12", "1:12"), ("to 1:20", "1:20")] {
        let (sent, in_class) =
            (e.flow("claim-CT55", flow)?.packets.1, e.class("claim-CT55", "router", "eth1", class)?[0]);
        wrong += u32::from(sent.abs_diff(in_class) > 8 || sent < 100);
        cells.push(format!("{class} {in_class} of {sent}"));
    }
    let note = "protocol and ToS, source, port, destination and port; the second step at an inner class";
    Ok(J::of(wrong == 0, "any header field, hierarchical", cells.join(", "), note))
}

fn ct18(e: &Evidence) -> Verdict {
    let run = "5-figure-7";
    let (before, during, after) = (
        mbit(e, run, "tcp", 62.0, 80.0)?,
        mbit(e, run, "tcp", 84.0, 102.0)?,
        mbit(e, run, "tcp", 108.0, 124.0)?,
    );
    let measured = format!("{before:.2} Mbit/s before, {during:.3} during, {after:.2} after");
    Ok(J::of(
        during < 0.05 * before && after > 0.95 * before,
        "stops at second 82, resumes at 102",
        measured,
        "",
    ))
}

/// Payload rate of all flows together, Mbit/s.
fn sum(e: &Evidence, run: &str, from: f64, to: f64) -> Result<f64, Missing> {
    ["tcp", "udp2", "udp1.5", "udp3", "udp5"].iter().map(|f| mbit(e, run, f, from, to)).sum()
}

fn ct19(e: &Evidence) -> Verdict {
    let all = sum(e, "5-figure-7", 84.0, 101.0)?;
    Ok(J::of((all / 9.5 - 1.0).abs() <= 0.02, "9,5 Mbps", format!("{all:.2} Mbit/s"), ""))
}

fn ct20(e: &Evidence) -> Verdict {
    let run = "5-figure-7";
    let five = mbit(e, run, "udp5", 84.0, 101.0)?;
    let mut most: f64 = 0.0;
    for flow in ["tcp", "udp2", "udp1.5", "udp3"] {
        most = most.max(mbit(e, run, flow, 84.0, 101.0)?);
    }
    Ok(J::of(
        five > most,
        "the 5 Mbps flow gets the most",
        format!("{five:.2} against at most {most:.2} Mbit/s"),
        "",
    ))
}

fn ct21(e: &Evidence) -> Verdict {
    let samples = &e.flow("5-figure-8", "tcp")?.goodput;
    let during: Vec<f64> = samples.iter().filter(|s| s.0 > 80.0 && s.0 <= 101.0).map(|s| s.1 / 1e6).collect();
    let low = during.iter().copied().fold(f64::MAX, f64::min);
    let mean = during.iter().sum::<f64>() / during.len() as f64;
    let measured = format!("{mean:.2} Mbit/s, in no second below {low:.2}");
    Ok(J::of(low > 0.1 && mean > 0.5, "not interrupted", measured, ""))
}

fn ct22(e: &Evidence) -> Verdict {
    let all = sum(e, "5-figure-8", 84.0, 101.0)?;
    let measured = format!("{all:.2} Mbit/s with all five");
    let note = "CBQ's bandwidth is fitted to this: 100Mbit. With the line's 10Mbit what is held to 1 and 0.5 gets more, and it is 8.42; neither is printed";
    Ok(J::of((all / 7.5 - 1.0).abs() <= 0.02, "7,5 Mbps", measured, note))
}

fn ct23(e: &Evidence) -> Verdict {
    let mut cells = Vec::new();
    let mut ok = true;
    for flow in ["udp2", "udp1.5", "udp3"] {
        let (before, during) =
            (mbit(e, "5-figure-8", flow, 65.0, 80.0)?, mbit(e, "5-figure-8", flow, 84.0, 101.0)?);
        ok &= during > 0.95 * before;
        cells.push(format!("{flow} {before:.2} and {during:.2}"));
    }
    Ok(J::of(ok, "do not slow down", format!("{} Mbit/s", cells.join(", ")), ""))
}

fn ct24(e: &Evidence) -> Verdict {
    let flow = e.flow("5-figure-8", "tcp")?;
    let steady: Vec<f64> =
        flow.goodput.iter().filter(|s| s.0 > 5.0 && s.0 <= 19.0).map(|s| s.1 / 1e6).collect();
    let loaded: Vec<f64> =
        flow.goodput.iter().filter(|s| s.0 > 84.0 && s.0 <= 101.0).map(|s| s.1 / 1e6).collect();
    let spread = |v: &[f64]| {
        let mean = v.iter().sum::<f64>() / v.len().max(1) as f64;
        (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len().max(1) as f64).sqrt() / mean
    };
    let (alone, beside) = (spread(&steady), spread(&loaded));
    let measured =
        format!("by {:.1} % from second to second, {:.1} % when alone", beside * 100.0, alone * 100.0);
    let note = "its class has its rate guaranteed and the line has room for all five: nothing tells TCP to slow down";
    Ok(J::of(beside > 0.01 && beside > alone, "not constant", measured, note))
}

const STALL: &str = "5.1-figure-9";

/// When TCP delivered nothing: from and to, seconds; the longest time that touches seconds 17 to 33.
fn stall(e: &Evidence) -> Result<(f64, f64), Missing> {
    let samples = &e.flow(STALL, "tcp")?.goodput;
    let (mut best, mut begin): ((f64, f64), Option<f64>) = ((0.0, 0.0), None);
    for (t, rate) in samples.iter().copied().filter(|s| s.0 > 16.0) {
        if rate > 100_000.0 {
            begin = None;
            continue;
        }
        let from = *begin.get_or_insert(t - 0.5);
        if from < 33.0 && t - from > best.1 - best.0 {
            best = (from, t);
        }
    }
    if best.1 > 0.0 { Ok(best) } else { Err("TCP did not stop".to_owned()) }
}

fn ct25(e: &Evidence) -> Verdict {
    let during = mbit(e, STALL, "tcp", 18.0, 33.0)?;
    let (from, to) = stall(e)?;
    let after = mbit(e, STALL, "tcp", 55.0, 69.0)?;
    let measured = format!(
        "{during:.3} Mbit/s between 18 and 33; nothing from second {from:.1} to {to:.1}; {after:.2} Mbit/s later"
    );
    let ok = during < 0.05 * 1.5 && to > 34.0 && to < 60.0 && after > 0.95 * 1.5;
    Ok(J::of(ok, "stops at 17, the UDP flow ends at 33, TCP sends again at 42", measured, ""))
}

fn ct26(e: &Evidence) -> Verdict {
    let (from, to) = stall(e)?;
    let cwnd = &e.flow(STALL, "tcp")?.cwnd;
    let grew = cwnd.iter().filter(|p| p.0 < 16.0).map(|p| p.1).fold(0.0, f64::max);
    let level: Vec<f64> = cwnd.iter().filter(|p| p.0 > from + 1.0 && p.0 < to).map(|p| p.1).collect();
    let (low, high) = level.iter().fold((f64::MAX, 0.0f64), |(l, h), &w| (l.min(w), h.max(w)));
    let measured = format!(
        "up to {grew:.0} segments before; {low:.0} to {high:.0} from second {:.0} to {to:.0}",
        from + 1.0
    );
    let ok = low >= 1.0 && high == low && grew > 0.0 && !level.is_empty();
    Ok(J::of(ok, "flat from 27 to 52 of its own axis, not zero", measured, "one value throughout"))
}

fn ct27(e: &Evidence) -> Verdict {
    let samples = &e.flow("5.1-figure-11", "tcp")?.goodput;
    let during = samples.iter().filter(|s| s.0 > 17.5 && s.0 <= 33.0).map(|s| s.1 / 1e6);
    let low = during.clone().fold(f64::MAX, f64::min);
    let mean = crate::evidence::mean(during);
    let measured = format!("{mean:.2} Mbit/s while UDP is on, in no half second below {low:.2}");
    Ok(J::of(low > 0.0 && mean > 0.95, "does not stop", measured, ""))
}

fn ct28(e: &Evidence) -> Verdict {
    let flow = e.flow("5.1-figure-11", "tcp")?;
    let window = |from: f64, to: f64| {
        crate::evidence::mean(flow.cwnd.iter().filter(|p| p.0 > from && p.0 <= to).map(|p| p.1))
    };
    let (before, during) = (window(10.0, 17.0), window(18.0, 33.0));
    let (rate, base) = (flow.goodput_between(18.0, 33.0) / 1e6, flow.goodput_between(8.0, 17.0) / 1e6);
    let measured = format!("window {before:.1} and {during:.1} segments, {base:.2} and {rate:.2} Mbit/s");
    let ok = during > 0.5 * before && rate > 0.65 * base && during > 1.5;
    Ok(J::of(ok, "no mark", measured, "no flat zone; TCP of 1.5 Mbps keeps at least its guarantee of 1"))
}
