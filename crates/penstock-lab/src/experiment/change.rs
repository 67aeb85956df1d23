//! Links that change in the run: `rate`, `delay` and `loss` as functions of time, traces of opportunities, and `down`.

use super::Builder;
use super::form::Form;
use super::forms;
use super::read::{self, Faults, Table, Val};
use super::spec::{Change, Values};
use penstock_model::{Rate, Span};
use toml::de::DeValue;

/// Most values of one list, most milliseconds of one trace.
const MOST: usize = 2_000_000;

/// One quantity of a link, in its base unit: bit/s, ns, parts per 1,000,000,000.
type Reads = fn(&str, Val<'_>, &mut Faults<'_>) -> Option<u64>;

fn bits(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<u64> {
    // A link may stand still for a while.
    if value.get_ref().as_str().is_some_and(|text| Rate::parse(text).is_ok_and(|r| r.bytes_per_s() == 0)) {
        return Some(0);
    }
    read::rate(key, value, faults).map(|rate| rate.bit_per_s())
}

fn ns(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<u64> {
    read::time(key, value, faults).map(|time| time.as_ns() as u64)
}

fn ppb(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<u64> {
    read::chance(key, value, faults).map(u64::from)
}

/// What a key says: the value at the beginning, and how it changes.
pub(super) struct Said<T> {
    pub(super) first: T,
    pub(super) change: Option<Change>,
}

/// `rate = "10mbit"`, or a function of time.
pub(super) fn rate(builder: &Builder<'_>, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Said<Rate>> {
    if !changes(value) {
        return read::rate("rate", value, faults).map(|first| Said { first, change: None });
    }
    let change = match trace(builder, value, faults) {
        Some(trace) => Change::Trace(trace?),
        None => Change::Values(values("rate", "\"10mbit\"", value, bits, faults)?),
    };
    let first = match &change {
        // On average.
        Change::Trace(ms) => {
            (ms.len() as u64 * 1500 * 8 * 1000) / u64::from(ms.last().copied().unwrap_or(1).max(1))
        }
        Change::Values(values) => values.first(),
    };
    if first < 8 {
        faults.add(value.span(), "rate: it begins with 0", "begin with a rate, and let it be 0 later");
        return None;
    }
    Some(Said { first: Rate::from_bit_per_s(first), change: Some(change) })
}

/// `delay = "10ms"`, or a function of time.
pub(super) fn delay(value: Val<'_>, faults: &mut Faults<'_>) -> Option<Said<Span>> {
    if !changes(value) {
        return read::time("delay", value, faults).map(|first| Said { first, change: None });
    }
    let values = values("delay", "\"10ms\"", value, ns, faults)?;
    Some(Said { first: Span::from_ns(values.first() as i64), change: Some(Change::Values(values)) })
}

/// `loss = "1%"`, or a function of time.
pub(super) fn loss(value: Val<'_>, faults: &mut Faults<'_>) -> Option<Said<u32>> {
    if !changes(value) {
        return read::chance("loss", value, faults).map(|first| Said { first, change: None });
    }
    let values = values("loss", "\"1%\"", value, ppb, faults)?;
    Some(Said { first: values.first() as u32, change: Some(Change::Values(values)) })
}

fn changes(value: Val<'_>) -> bool {
    matches!(value.get_ref(), DeValue::Array(_) | DeValue::Table(_))
}

/// `down = [{ from = "3s", to = "4s" }]`.
pub(super) fn down(value: Val<'_>, faults: &mut Faults<'_>) -> Vec<(Span, Span)> {
    let mut all: Vec<(Span, Span)> = Vec::new();
    for one in read::list(value) {
        let Some(mut table) = Table::of(one, "down", &forms::DOWN, faults) else { continue };
        let mut time = |key: &'static str| {
            let value = table.need(key, &format!("{key} = \"3s\""), faults)?;
            read::time(key, value, faults)
        };
        let (from, to) = (time("from"), time("to"));
        table.finish(faults);
        let (Some(from), Some(to)) = (from, to) else { continue };
        if to <= from {
            faults.add(one.span(), "down: it ends before it begins", "write { from = \"3s\", to = \"4s\" }");
        } else if all.last().is_some_and(|last| from <= last.1) {
            faults.add(
                one.span(),
                "down: it begins before the one above has ended",
                "write them in the order of time",
            );
        } else {
            all.push((from, to));
        }
    }
    all
}

/// `{ trace = "@lte.down" }`: the milliseconds; `None` for anything else.
fn trace(builder: &Builder<'_>, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Option<Vec<u32>>> {
    value.get_ref().as_table()?.get("trace")?;
    let mut table = Table::of(value, "rate", &forms::RATE_CHANGE, faults)?;
    let path = table.take("trace")?;
    table.finish(faults);
    let Some(text) = read::string("trace", path, faults) else { return Some(None) };
    let Some(name) = text.strip_prefix('@') else {
        faults.add(path.span(), "trace must name a file", "write trace = \"@lte.down\"");
        return Some(None);
    };
    let text = match builder.open(name, &faults.source.name) {
        Ok((_, text)) => text,
        Err(e) => {
            let help = format!("the path is read from the folder of {}", faults.source.name);
            faults.add(path.span(), format!("trace: cannot read {name}: {e}"), help);
            return Some(None);
        }
    };
    let read = opportunities(&text);
    if let Err(why) = &read {
        let help = "a trace is that of Mahimahi: on each line the millisecond at which 1500 bytes can leave";
        faults.add(path.span(), format!("trace: {name}: {why}"), help);
    }
    Some(read.ok())
}

/// The lines of a trace.
pub(super) fn opportunities(text: &str) -> Result<Vec<u32>, String> {
    let mut all: Vec<u32> = Vec::new();
    for (line, n) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let Ok(ms) = line.parse::<u32>() else {
            return Err(format!("line {n}: \"{line}\" is not a number of milliseconds"));
        };
        if all.last().is_some_and(|&last| ms < last) {
            return Err(format!("line {n}: {ms} comes behind {}", all[all.len() - 1]));
        }
        if all.len() == MOST {
            return Err(format!("it has more than {MOST} lines"));
        }
        all.push(ms);
    }
    match all.last() {
        None => Err("it is empty".to_owned()),
        Some(0) => Err("its last millisecond is 0: it never begins again".to_owned()),
        Some(_) => Ok(all),
    }
}

/// The forms of a quantity's steps and of its functions of time.
fn forms(key: &str) -> (&'static Form, &'static Form) {
    match key {
        "rate" => (&forms::RATE_STEP, &forms::RATE_CHANGE),
        "delay" => (&forms::DELAY_STEP, &forms::DELAY_CHANGE),
        _ => (&forms::LOSS_STEP, &forms::LOSS_CHANGE),
    }
}

/// A list of `{ at, value }`, or one of the functions.
fn values(
    key: &'static str,
    example: &str,
    value: Val<'_>,
    reads: Reads,
    faults: &mut Faults<'_>,
) -> Option<Values> {
    if let DeValue::Array(_) = value.get_ref() {
        return list(key, example, value, reads, faults);
    }
    let mut table = Table::of(value, key, forms(key).1, faults)?;
    let pair = |name: &'static str, table: &mut Table<'_>, faults: &mut Faults<'_>| {
        let found = table.take(name)?;
        let two: Vec<Option<u64>> = read::list(found).into_iter().map(|v| reads(key, v, faults)).collect();
        if let [Some(a), Some(b)] = two[..] {
            return Some(Some((a, b)));
        }
        if two.len() != 2 {
            let help = format!("write {name} = [{example}, {example}]");
            faults.add(found.span(), format!("{key}: {name} has two values"), help);
        }
        Some(None)
    };
    let time = |name: &'static str, table: &mut Table<'_>, faults: &mut Faults<'_>| {
        table.take(name).and_then(|v| read::time(name, v, faults).map(|t| (v.span(), t)))
    };
    let positive = |found: Option<(std::ops::Range<usize>, Span)>, name: &str, faults: &mut Faults<'_>| {
        let (span, time) = found?;
        if time == Span::ZERO {
            faults.add(span, format!("{key}: {name} is 0"), format!("write {name} = \"1s\""));
            return None;
        }
        Some(time)
    };
    let made = if let Some(pair) = pair("ramp", &mut table, faults) {
        let from = time("from", &mut table, faults).map_or(Span::ZERO, |t| t.1);
        let to = time("to", &mut table, faults);
        let every = time("every", &mut table, faults);
        let every = every.clone().and_then(|_| positive(every, "every", faults));
        if let Some((span, to)) = &to
            && *to <= from
        {
            faults.add(
                span.clone(),
                format!("{key}: the ramp ends before it begins"),
                "write a later \"to\"",
            );
        }
        pair.map(|(a, b)| Values::Ramp { values: (a, b), from, to: to.map(|t| t.1), every })
    } else if let Some(pair) = pair("sine", &mut table, faults) {
        let period = match time("period", &mut table, faults) {
            None => {
                faults.add(value.span(), format!("{key}: a sine has a period"), "add period = \"10s\"");
                None
            }
            found => positive(found, "period", faults),
        };
        let every = time("every", &mut table, faults);
        let every = every.clone().and_then(|_| positive(every, "every", faults));
        pair.and_then(|(a, b)| Some(Values::Sine { values: (a, b), period: period?, every }))
    } else if let Some(found) = table.take("steps") {
        let all: Option<Vec<u64>> = read::list(found).into_iter().map(|v| reads(key, v, faults)).collect();
        let every = match time("every", &mut table, faults) {
            None => {
                faults.add(value.span(), format!("{key}: steps take turns"), "add every = \"5s\"");
                None
            }
            found => positive(found, "every", faults),
        };
        match (all, every) {
            (Some(all), Some(every)) if !all.is_empty() => Some(Values::Turns { values: all, every }),
            _ => None,
        }
    } else {
        let help = format!("write a list of {{ at = \"5s\", value = {example} }}, or ramp, sine or steps");
        faults.add(value.span(), format!("{key}: there is no such function of time"), help);
        return None;
    };
    table.finish(faults);
    made
}

fn list(
    key: &'static str,
    example: &str,
    value: Val<'_>,
    reads: Reads,
    faults: &mut Faults<'_>,
) -> Option<Values> {
    let mut all: Vec<(Span, u64)> = Vec::new();
    let items = read::list(value);
    for one in &items {
        let Some(mut table) = Table::of(one, key, forms(key).0, faults) else { continue };
        let at = table.need("at", "at = \"5s\"", faults).and_then(|v| read::time("at", v, faults));
        let said = format!("value = {example}");
        let number = table.need("value", &said, faults).and_then(|v| reads(key, v, faults));
        table.finish(faults);
        let (Some(at), Some(number)) = (at, number) else { continue };
        if all.last().is_some_and(|last| at <= last.0) {
            faults.add(
                one.span(),
                format!("{key}: this is not later than the one above"),
                "write them in the order of time",
            );
        }
        all.push((at, number));
    }
    match (all.first(), all.last()) {
        (Some(first), Some(_)) if first.0 > Span::ZERO => {
            let help = format!("begin with {{ at = \"0s\", value = {example} }}");
            faults.add(items[0].span(), format!("{key}: nothing is said of the beginning"), help);
            None
        }
        (Some(_), Some(last)) if key == "rate" && last.1 == 0 => {
            let span = items[items.len() - 1].span();
            faults.add(
                span,
                "rate: the last is 0: nothing would ever leave again",
                "let a rate follow, or use down",
            );
            None
        }
        (Some(_), Some(_)) if all.len() > MOST => {
            faults.add(value.span(), format!("{key}: there are more than {MOST} values"), "write fewer");
            None
        }
        (Some(_), Some(_)) => Some(Values::List(all)),
        _ => {
            if items.is_empty() {
                let help = format!("write [{{ at = \"0s\", value = {example} }}, …]");
                faults.add(value.span(), format!("{key} is an empty list"), help);
            }
            None
        }
    }
}

impl Values {
    /// What holds at the beginning.
    pub fn first(&self) -> u64 {
        match self {
            Values::List(all) => all.first().map_or(0, |v| v.1),
            Values::Ramp { values, .. } => values.0,
            Values::Sine { values: (a, b), .. } => a / 2 + b / 2,
            Values::Turns { values, .. } => values.first().copied().unwrap_or(0),
        }
    }
    /// As a step function, until the run ends: from when on which value holds.
    pub fn steps(&self, duration: Span) -> Vec<(Span, u64)> {
        let least = Span::from_ns(1_000_000);
        let times = |from: Span, to: Span, every: Span| {
            let count = (to - from).as_ns().max(0) / every.as_ns().max(1);
            (0..=count).map(move |n| Span::from_ns(from.as_ns() + n * every.as_ns()))
        };
        let mut steps: Vec<(Span, u64)> = match self {
            Values::List(all) => all.clone(),
            Values::Ramp { values: (a, b), from, to, every } => {
                let to = to.unwrap_or(duration).max(*from + Span::from_ns(1));
                let long = (to - *from).as_ns();
                let every = every.unwrap_or(Span::from_ns(long / 100).max(least));
                let value = |at: Span| {
                    let gone = i128::from((at - *from).as_ns().min(long));
                    (i128::from(*a) + (i128::from(*b) - i128::from(*a)) * gone / i128::from(long)) as u64
                };
                let rising = times(*from, to, every).filter(|at| *at < to).map(|at| (at, value(at)));
                std::iter::once((Span::ZERO, *a)).chain(rising).chain([(to, *b)]).collect()
            }
            Values::Sine { values: (a, b), period, every } => {
                let every = every.unwrap_or(Span::from_ns(period.as_ns() / 100).max(least));
                let (middle, swing) = ((*a as f64 + *b as f64) / 2.0, (*b as f64 - *a as f64) / 2.0);
                let turn = |at: Span| (at.as_ns() % period.as_ns()) as f64 / period.as_ns() as f64;
                times(Span::ZERO, duration, every)
                    .map(|at| (at, (middle + swing * sine(turn(at))).round().max(0.0) as u64))
                    .collect()
            }
            Values::Turns { values, every } => times(Span::ZERO, duration, *every)
                .zip(values.iter().cycle())
                .map(|(at, &v)| (at, v))
                .collect(),
        };
        steps.dedup_by_key(|step| step.0);
        steps.dedup_by_key(|step| step.1);
        steps
    }
}

/// The sine of so many turns, 0 to 1. By additions and multiplications alone, which are the same on every machine; good to 1e-9.
fn sine(turns: f64) -> f64 {
    // Into a quarter to either side of nought.
    let (turns, sign) = if turns >= 0.5 { (turns - 0.5, -1.0) } else { (turns, 1.0) };
    let turns = if turns > 0.25 { 0.5 - turns } else { turns };
    let x = turns * std::f64::consts::TAU;
    let square = x * x;
    let (mut term, mut sum) = (x, x);
    for n in 1..10 {
        term = -term * square / f64::from(2 * n * (2 * n + 1));
        sum += term;
    }
    sign * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_is_one() {
        for n in 0..1000 {
            let turns = f64::from(n) / 1000.0;
            let wanted = (turns * std::f64::consts::TAU).sin();
            assert!((sine(turns) - wanted).abs() < 1e-9, "{turns}");
        }
    }

    #[test]
    fn functions_become_steps() {
        let s = Span::from_secs;
        let ramp = Values::Ramp { values: (100, 0), from: s(2), to: Some(s(4)), every: Some(s(1)) };
        assert_eq!(ramp.steps(s(10)), [(s(0), 100), (s(3), 50), (s(4), 0)]);
        let turns = Values::Turns { values: vec![5, 1], every: s(2) };
        assert_eq!(turns.steps(s(5)), [(s(0), 5), (s(2), 1), (s(4), 5)]);
        let wave = Values::Sine { values: (0, 200), period: s(4), every: Some(s(1)) };
        assert_eq!(
            (wave.first(), wave.steps(s(4))),
            (100, vec![(s(0), 100), (s(1), 200), (s(2), 100), (s(3), 0), (s(4), 100)])
        );
    }

    #[test]
    fn traces_are_read_or_refused() {
        assert_eq!(opportunities("0\n1\n1\n\n5\n"), Ok(vec![0, 1, 1, 5]));
        for (text, said) in
            [("", "empty"), ("0\n", "never begins"), ("2\n1\n", "line 2"), ("1\nx\n", "line 2")]
        {
            assert!(opportunities(text).unwrap_err().contains(said), "{text}");
        }
    }
}
