//! `[[link]]`.

use super::Builder;
use super::change;
use super::forms;
use super::queue;
use super::read::{self, Faults, Table, Val};
use super::source::Place;
use super::spec::{Change, Changes, Ecn, End, Framing, Link};
use std::collections::BTreeMap;
use toml::de::DeValue;

/// The tables of `[[key]]`, each called `[[key]]` in messages.
pub(super) fn tables<'a>(
    table: &mut Table<'a>,
    key: &'static str,
    example: &str,
    faults: &mut Faults<'_>,
) -> Vec<Table<'a>> {
    let Some(form) = forms::EXPERIMENT.key(key).and_then(|k| k.kind.table()) else { return Vec::new() };
    let Some(value) = table.take(key) else { return Vec::new() };
    let DeValue::Array(items) = value.get_ref() else {
        let help = format!("write [[{key}]] with two brackets and below it {example}");
        faults.add(value.span(), format!("{key} is not a list of tables"), help);
        return Vec::new();
    };
    items.iter().filter_map(|v| Table::of(v, format!("[[{key}]]"), form, faults)).collect()
}

/// One of some words.
fn word(key: &str, value: Val<'_>, words: &[&str], faults: &mut Faults<'_>) -> Option<usize> {
    let text = read::string(key, value, faults)?;
    let found = words.iter().position(|w| *w == text);
    if found.is_none() {
        let (last, first) = words.split_last()?;
        let help = format!("write \"{}\" or \"{last}\"", first.join("\", \""));
        faults.add(value.span(), format!("{key}: \"{text}\" is unknown"), help);
    }
    found
}

impl Builder<'_> {
    pub(super) fn read_links(&mut self, root: &mut Table<'_>, faults: &mut Faults<'_>) {
        for mut table in tables(root, "link", "ends = [\"a:eth0\", \"b:eth0\"]", faults) {
            let mut link = Link { place: faults.place(table.span()), ..Link::default() };
            if let Some(value) = table.take("name") {
                link.name = read::string("name", value, faults).unwrap_or_default();
            }
            if let Some(value) = table.need("ends", "ends = [\"a:eth0\", \"b:eth0\"]", faults) {
                link.ends = read::list(value).into_iter().filter_map(|v| end(self, v, faults)).collect();
                if read::list(value).len() < 2 {
                    faults.add(
                        value.span(),
                        "a link has two ends or more",
                        "write ends = [\"a:eth0\", \"b:eth0\"]",
                    );
                }
            }
            if let Some(said) = table.take("rate").and_then(|v| change::rate(self, v, faults)) {
                (link.rate, link.changes.rate) = (Some(said.first), said.change);
            }
            if let Some(said) = table.take("delay").and_then(|v| change::delay(v, faults)) {
                (link.delay, link.changes.delay) = (said.first, said.change);
            }
            if let Some(said) = table.take("loss").and_then(|v| change::loss(v, faults)) {
                (link.loss_ppb, link.changes.loss) = (said.first, said.change);
            }
            if let Some(value) = table.take("down") {
                link.changes.down = change::down(value, faults);
            }
            // The packets of a trace are those of IP.
            let traced = |changes: &Changes| matches!(changes.rate, Some(Change::Trace(_)));
            if traced(&link.changes) || link.ends.iter().any(|e| traced(&e.changes)) {
                link.framing = Framing::Ip;
            }
            if let Some(value) = table.take("framing") {
                let chosen = word("framing", value, &Framing::ALL.map(|f| f.1), faults);
                link.framing = chosen.map_or(Framing::default(), |n| Framing::ALL[n].0);
            }
            if let Some(value) = table.take("duplex") {
                let chosen = word("duplex", value, &["full", "half"], faults);
                if chosen == Some(0) && link.ends.len() > 2 {
                    faults.add(value.span(), "more than two ends share the medium", "leave duplex out");
                }
                link.half_duplex = chosen == Some(1);
            }
            link.ecn = table.take("ecn").and_then(|v| ecn(v, faults)).unwrap_or_default();
            link.queue = table.take("queue").and_then(|v| queue::read(v, faults));
            table.finish(faults);
            self.experiment.links.push(link);
        }
    }

    pub(super) fn finish_links(&mut self) {
        let mut plugged: BTreeMap<(String, String), ()> = BTreeMap::new();
        let mut links = std::mem::take(&mut self.experiment.links);
        for link in &mut links {
            link.half_duplex |= link.ends.len() > 2;
            let changes = link.changes.any() || link.ends.iter().any(|e| e.changes.any());
            if changes && link.half_duplex {
                let message = "a shared medium does not change in a run";
                let help =
                    "give the link two ends and both directions, or plug the ends into a [switch.NAME]";
                self.fault(&link.place.clone(), message, help);
            }
            let mut link_ends = Vec::new();
            for end in &mut link.ends {
                end.dev = self.device_meant(&end.host, &end.dev);
                let place: &Place = &end.place;
                if end.dev == "lo" {
                    let message = format!("{}:lo is not an end of a link", end.host);
                    self.fault(place, message, "what goes to lo comes back from it; name another device");
                    continue;
                }
                if !self.has_device(&end.host, &end.dev, place) {
                    continue;
                }
                let twice = link_ends.contains(&(end.host.clone(), end.dev.clone()));
                link_ends.push((end.host.clone(), end.dev.clone()));
                if twice {
                    let message = format!("{}:{} is both ends of this link", end.host, end.dev);
                    self.fault(place, message, "a link joins two devices: name another one");
                } else if plugged.insert((end.host.clone(), end.dev.clone()), ()).is_some() {
                    let message = format!("{}:{} is an end of a link already", end.host, end.dev);
                    self.fault(place, message, "put all ends of a shared segment into one [[link]]");
                }
            }
        }
        self.experiment.links = links;
    }
}

/// `"u5:eth0"` or `{ end = "u5:eth0", rate, delay, loss, down, ecn, queue, ring, tx_frames, bql, tx_queues, capture }`.
pub(super) fn end(builder: &Builder<'_>, value: Val<'_>, faults: &mut Faults<'_>) -> Option<End> {
    if !value.get_ref().is_table() {
        return named("ends", value, faults);
    }
    let mut table = Table::of(value, "an end", &forms::END, faults)?;
    let found = table.need("end", "end = \"a:eth0\"", faults).and_then(|v| named("end", v, faults));
    let mut changes = Changes::default();
    let rate = table.take("rate").and_then(|v| change::rate(builder, v, faults)).map(|said| {
        changes.rate = said.change;
        said.first
    });
    let delay = table.take("delay").and_then(|v| change::delay(v, faults)).map(|said| {
        changes.delay = said.change;
        said.first
    });
    let loss_ppb = table.take("loss").and_then(|v| change::loss(v, faults)).map(|said| {
        changes.loss = said.change;
        said.first
    });
    if let Some(value) = table.take("down") {
        changes.down = change::down(value, faults);
    }
    let capture = table.take("capture").and_then(|v| read::boolean("capture", v, faults)).unwrap_or(false);
    let ecn = table.take("ecn").and_then(|v| ecn(v, faults));
    let queue = table.take("queue").and_then(|v| queue::read(v, faults));
    let ring =
        table.take("ring").and_then(|v| read::integer("ring", v, 0..65_536, faults)).unwrap_or(0) as u32;
    let tx_queues = table.take("tx_queues").and_then(|v| read::integer("tx_queues", v, 1..4_097, faults));
    let tx_frames = table.take("tx_frames").map(|v| (v, read::integer("tx_frames", v, 1..65_536, faults)));
    if let Some((value, Some(frames))) = tx_frames
        && frames > u64::from(ring.max(1))
    {
        faults.add(
            value.span(),
            "tx_frames is more than the ring holds",
            format!("write 1 to {ring}, or a larger ring"),
        );
    }
    let bql = table.take("bql").map(|v| (v, read::boolean("bql", v, faults).unwrap_or(false)));
    if let Some((value, true)) = bql {
        if ring == 0 {
            faults.add(
                value.span(),
                "bql without a ring",
                "write ring = 256 beside it: it bounds what a ring takes",
            );
        } else if tx_queues.is_some_and(|n| n > 1) {
            faults.add(
                value.span(),
                "bql of several transmit queues is not simulated",
                "leave out bql, or tx_queues",
            );
        }
    }
    let bql = bql.is_some_and(|b| b.1);
    table.finish(faults);
    let tx_frames = tx_frames.and_then(|(_, frames)| frames).unwrap_or(1) as u32;
    let tx_queues = tx_queues.unwrap_or(1) as u32;
    found.map(|end| End {
        rate,
        delay,
        loss_ppb,
        ecn,
        queue,
        ring,
        tx_frames,
        bql,
        tx_queues,
        changes,
        capture,
        ..end
    })
}

/// `ecn = "bleach"`.
fn ecn(value: Val<'_>, faults: &mut Faults<'_>) -> Option<Ecn> {
    let at = word("ecn", value, &Ecn::ALL.map(|(name, _)| name), faults)?;
    Some(Ecn::ALL[at].1)
}

fn named(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<End> {
    let text = read::string(key, value, faults)?;
    match text.split_once(':') {
        Some((host, dev)) if !host.is_empty() && !dev.is_empty() => Some(End {
            host: host.to_owned(),
            dev: dev.to_owned(),
            place: faults.place(value.span()),
            ..End::default()
        }),
        _ => {
            let host = if text.is_empty() { "u1" } else { text.trim_matches(':') };
            faults.add(
                value.span(),
                format!("\"{text}\" is not an end of a link"),
                format!("write \"{host}:eth0\""),
            );
            None
        }
    }
}
