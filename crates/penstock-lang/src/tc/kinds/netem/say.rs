//! What makes a netem again.

use crate::tc::say::{Say, Unit};
use penstock_model::psched;

/// A share of 2^32 - 1, in percent.
fn percent(share: u32) -> String {
    format!("{}%", 100.0 * f64::from(share) / f64::from(u32::MAX))
}

/// All words; what cannot be said is named.
pub fn say_qdisc(say: &mut Say) {
    let o = say.o;
    let corr = |name: &str| o.nested("corr").and_then(|c| c.u32(name)).unwrap_or(0);
    let pair =
        |name: &str| o.nested(name).map(|p| ["probability", "correlation"].map(|k| p.u32(k).unwrap_or(0)));
    say.given("limit", Unit::Plain);
    let (latency, jitter) = (say.n("latency"), say.n("jitter"));
    let exact = ["latency64", "jitter64"].map(|name| o.i64(name).unwrap_or(0) as u64);
    if o.has("latency64") {
        // Some delay at least, so that what follows of it may be said.
        if exact != [0, 0] || corr("delay") != 0 {
            say.word("delay").value("latency64", exact[0], Unit::Ns);
        }
        if exact[1] != 0 || corr("delay") != 0 {
            say.value("jitter64", exact[1], Unit::Ns);
        }
    } else if latency != 0 || jitter != 0 || corr("delay") != 0 {
        say.word("delay").value("latency", u64::from(psched::tick2time(latency)), Unit::Us);
    }
    if !o.has("latency64") && (jitter != 0 || corr("delay") != 0) {
        say.value("jitter", u64::from(psched::tick2time(jitter)), Unit::Us);
    }
    if corr("delay") != 0 {
        say.word(percent(corr("delay")));
    }
    let model = o.has("loss_state") || o.has("loss_gemodel");
    // tc sends the correlation of duplicates only where another was given.
    let carries = corr("duplicate") != 0 && corr("delay") == 0;
    if say.n("loss") != 0 || corr("loss") != 0 || (carries && !model) {
        let loss = percent(say.n("loss"));
        say.word("loss").word("random").word(loss);
        if corr("loss") != 0 || carries {
            say.word(percent(corr("loss")));
        }
    }
    if let Some(model) = o.nested("loss_state") {
        let p = |name| percent(model.u32(name).unwrap_or(0));
        say.word("loss").word("state");
        ["p13", "p31", "p32", "p23", "p14"].map(p).into_iter().for_each(|p| {
            say.word(p);
        });
    }
    if let Some(model) = o.nested("loss_gemodel") {
        let p = |name| model.u32(name).unwrap_or(0);
        say.word("loss").word("gemodel");
        [p("p"), p("r"), u32::MAX - p("h"), p("k1")].map(percent).into_iter().for_each(|p| {
            say.word(p);
        });
    }
    if say.n("duplicate") != 0 || corr("duplicate") != 0 {
        let share = percent(say.n("duplicate"));
        say.pair("duplicate", share);
        if corr("duplicate") != 0 {
            say.word(percent(corr("duplicate")));
        }
    }
    for name in ["reorder", "corrupt"] {
        // Without a delay tc refuses to reorder: see [`late`].
        let late = name == "reorder" && latency == 0;
        if let Some([probability, rho]) = pair(name).filter(|p| (p[0] != 0 || p[1] != 0) && !late) {
            say.pair(name, percent(probability));
            if rho != 0 {
                say.word(percent(rho));
            }
        }
    }
    say.unless_zero("gap", Unit::Plain);
    if let Some(rate) = o.nested("rate").filter(|r| r.u64("rate").unwrap_or(0) != 0) {
        say.word("rate").value("rate/rate", rate.u64("rate").unwrap_or(0), Unit::Rate);
        for name in ["packetoverhead", "cellsize", "celloverhead"] {
            say.word(rate.i64(name).unwrap_or(0).to_string());
        }
    }
    rest(say);
    late(say);
}

fn rest(say: &mut Say) {
    let o = say.o;
    if let Some(slot) = o.nested("slot") {
        let n = |name| slot.i64(name).unwrap_or(0);
        say.word("slot");
        if n("dist_jitter") > 0 {
            let name = o.str("slot_distribution").unwrap_or("normal");
            say.pair("distribution", name);
            say.word(format!("{}ns", n("dist_delay"))).word(format!("{}ns", n("dist_jitter")));
        } else {
            say.word(format!("{}ns", n("min_delay"))).word(format!("{}ns", n("max_delay")));
        }
        for name in ["packets", "bytes"] {
            if n(name) != 0 {
                say.pair(name, n(name));
            }
        }
    }
    if o.has("ecn") {
        say.word("ecn");
    }
    say.given("seed", Unit::Plain);
    match o.str("distribution") {
        Some(name) if say.n("latency") != 0 && say.n("jitter") != 0 => {
            say.pair("distribution", name);
        }
        Some(_) => {
            say.lacks(Some("distribution"));
        }
        None => {}
    }
}

/// A change keeps what it does not speak of: what was given with a delay that is gone is said first, with one.
fn late(say: &mut Say) {
    let o = say.o;
    let n = |name: &str| o.nested("reorder").and_then(|r| r.u32(name)).unwrap_or(0);
    if o.u32("latency").unwrap_or(0) != 0 || (n("probability"), n("correlation")) == (0, 0) {
        return;
    }
    say.first(&["delay", "1us", "reorder", &percent(n("probability")), &percent(n("correlation"))]);
}
