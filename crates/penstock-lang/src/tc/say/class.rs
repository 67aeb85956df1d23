//! Classes.

use super::{Said, Say, Unit, burst};
use crate::tc::kinds::linklayer_name;
use penstock_model::{Handle, Options};

/// The words that make a class of this kind with these options, as a dump has them. `bandwidth` is that of a cbq's link, bytes per
/// second.
pub fn class(kind: &str, o: &Options, bandwidth: u32) -> Said {
    let mut say = Say::new(o);
    let lacking = match kind {
        "htb" => htb(&mut say),
        "hfsc" => hfsc(&mut say),
        "drr" | "ets" => {
            say.given("quantum", Unit::Plain);
            None
        }
        "qfq" => {
            say.given("weight", Unit::Plain).given("maxpkt", Unit::Plain);
            None
        }
        "dsmark" => {
            say.given("mask", Unit::Plain).given("value", Unit::Plain);
            None
        }
        "cbq" => cbq(&mut say, bandwidth),
        _ => None,
    };
    let mut said = say.done();
    said.lacking.extend(lacking);
    said
}

fn htb(say: &mut Say) -> Option<&'static str> {
    let o = say.o;
    let rate = |name| o.u64(name).unwrap_or(0);
    say.given("rate", Unit::Rate).given("ceil", Unit::Rate);
    for (word, of, ticks) in [("burst", "rate", "buffer"), ("cburst", "ceil", "cbuffer")] {
        let size = burst(rate(of), say.n(ticks));
        // Without a burst tc computes one.
        let cell = 1u64 << (say.n(if word == "burst" { "cell_log" } else { "ccell_log" }) & 31);
        let text = if cell > 1 { format!("{}/{cell}", size.max(1)) } else { size.max(1).to_string() };
        say.pair(word, text);
    }
    say.given("prio", Unit::Plain);
    if say.n("quantum") != 0 {
        say.given("quantum", Unit::Plain);
    }
    if say.n("mpu") != 0 {
        say.given("mpu", Unit::Plain);
    }
    super::qdisc::overhead(say);
    None
}

fn hfsc(say: &mut Say) -> Option<&'static str> {
    for name in ["rt", "ls", "ul"] {
        let Some(curve) = say.o.nested(name) else { continue };
        let n = |part| curve.u64(part).unwrap_or(0);
        say.word(name);
        say.word("m1").value(&format!("{name}/m1"), n("m1"), Unit::Rate);
        say.word("d").value(&format!("{name}/d"), n("d"), Unit::Us);
        say.word("m2").value(&format!("{name}/m2"), n("m2"), Unit::Rate);
    }
    None
}

fn cbq(say: &mut Say, bandwidth: u32) -> Option<&'static str> {
    let o = say.o;
    let none = Options::new();
    let (lss, wrr) = (o.nested("lss").unwrap_or(&none), o.nested("wrr").unwrap_or(&none));
    let n = |of: &Options, name: &str| of.u32(name).unwrap_or(0);
    say.word("bandwidth").word(super::rate(u64::from(bandwidth)));
    say.given("rate", Unit::Rate);
    say.pair("cell", 1u64 << (say.n("cell_log") & 31));
    say.pair("avpkt", n(lss, "avpkt")).pair("ewma", n(lss, "ewma"));
    say.pair("allot", n(wrr, "allot").max(1))
        .pair("prio", n(wrr, "priority"))
        .pair("weight", n(wrr, "weight").max(1));
    let flags = n(lss, "flags");
    say.word(if flags & 1 != 0 { "bounded" } else { "borrow" });
    say.word(if flags & 2 != 0 { "isolated" } else { "sharing" });
    let mut lacking = None;
    if n(lss, "maxidle") != 0 {
        // How many packets may come at once: the number whose idle time tc makes so.
        say.word("maxburst").value("lss/maxidle", 20, Unit::Plain);
        lacking = Some("maxburst");
    }
    if n(lss, "offtime") != 0 {
        say.word("minburst").value("lss/offtime", 2, Unit::Plain);
        lacking = Some("minburst");
    }
    if say.n("mpu") != 0 {
        say.given("mpu", Unit::Plain);
    }
    if let Some(n) = o.i64("overhead").filter(|&n| n != 0) {
        say.pair("overhead", n);
    }
    if say.n("linklayer") > 1 {
        let name = linklayer_name(say.n("linklayer"));
        say.pair("linklayer", name);
    }
    if let Some(fopt) = o.nested("fopt") {
        say.pair("split", Handle(n(fopt, "split")));
        say.pair("defmap", format!("{:x}", n(fopt, "defmap")));
    }
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::say::words;
    use penstock_model::psched;

    #[test]
    fn a_class_of_htb() {
        let (rate, ceil) = (125_000u64, 250_000u64);
        let o =
            Options::new().with("rate", rate).with("ceil", ceil).with("buffer", psched::xmittime(rate, 1599));
        let o = o.with("cbuffer", psched::xmittime(ceil, 1598)).with("prio", 2u32).with("quantum", 12_500u32);
        assert_eq!(
            words(&class("htb", &o, 0).add).join(" "),
            "rate 1mbit ceil 2mbit burst 1599 cburst 1598 prio 2 quantum 12500"
        );
    }

    #[test]
    fn a_curve_of_hfsc() {
        let curve = Options::new().with("m1", 0u32).with("d", 10_000u32).with("m2", 125_000u32);
        let o = Options::new().with("ls", curve);
        assert_eq!(words(&class("hfsc", &o, 0).add).join(" "), "ls m1 0bit d 10ms m2 1mbit");
    }
}
