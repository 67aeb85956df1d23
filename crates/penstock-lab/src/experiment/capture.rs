//! `capture = true` and `[[capture]]`: which cards are captured, and into which files.

use super::Builder;
use super::link::tables;
use super::read::{self, Faults, Table, Val};
use super::spec::{Capture, End};
use penstock_model::Span;
use std::collections::BTreeSet;

/// Bytes of a frame that are kept where nothing is said: all headers there are.
const SNAPLEN: u64 = 160;
/// Longest frame.
const LONGEST: u64 = 65_549;

impl Builder<'_> {
    pub(super) fn read_captures(&mut self, root: &mut Table<'_>, faults: &mut Faults<'_>) {
        for mut table in tables(root, "capture", "on = \"r:eth1\"", faults) {
            let mut capture = Capture { place: faults.place(table.span()), ..Capture::default() };
            if let Some(value) = table.need("on", "on = \"r:eth1\"", faults) {
                let ends = read::list(value).into_iter().filter_map(|v| device(v, faults));
                capture.on = ends.collect();
                if read::list(value).is_empty() {
                    faults.add(value.span(), "on is an empty list", "write on = \"r:eth1\"");
                }
            }
            if let Some(value) = table.take("name") {
                let name = read::string("name", value, faults).unwrap_or_default();
                let fits = |c: char| c.is_alphanumeric() || "_.-".contains(c);
                if name.is_empty() || name.starts_with('.') || name.len() > 100 || !name.chars().all(fits) {
                    let help = "use letters, digits, \"-\", \"_\" and \".\", at most 100";
                    faults.add(value.span(), format!("a capture cannot be called \"{name}\""), help);
                }
                capture.name = name;
            }
            let snaplen =
                table.take("snaplen").and_then(|v| read::integer("snaplen", v, 14..LONGEST + 1, faults));
            capture.snaplen = snaplen.unwrap_or(SNAPLEN) as usize;
            let drops = table.take("drops").and_then(|v| read::boolean("drops", v, faults));
            capture.drops = drops.unwrap_or(true);
            capture.from = table.take("from").and_then(|v| read::time("from", v, faults)).unwrap_or_default();
            let until = table.take("until").map(|v| (v.span(), read::time("until", v, faults)));
            if let Some((span, Some(until))) = until {
                if until <= capture.from {
                    faults.add(span, "the capture ends before it begins", "write a later \"until\"");
                }
                capture.until = Some(until);
            }
            table.finish(faults);
            self.experiment.captures.push(capture);
        }
    }

    /// The devices and ends that say `capture = true`, and what only the whole can tell.
    pub(super) fn finish_captures(&mut self) {
        let mut own: Vec<End> = Vec::new();
        for host in &self.experiment.hosts {
            let those = host.devices.iter().filter(|d| d.capture);
            own.extend(those.map(|d| End {
                host: host.name.clone(),
                dev: d.name.clone(),
                place: d.place.clone(),
                ..End::default()
            }));
        }
        for end in self.experiment.links.iter().flat_map(|l| &l.ends).filter(|e| e.capture) {
            if !own.iter().any(|o| (&o.host, &o.dev) == (&end.host, &end.dev)) {
                own.push(end.clone());
            }
        }
        let alone = |end: End| Capture {
            place: end.place.clone(),
            on: vec![end],
            snaplen: SNAPLEN as usize,
            drops: true,
            ..Capture::default()
        };
        let mut captures = std::mem::take(&mut self.experiment.captures);
        captures.extend(own.into_iter().map(alone));
        let plugged: BTreeSet<(String, String)> = self
            .experiment
            .links
            .iter()
            .flat_map(|l| &l.ends)
            .map(|e| (e.host.clone(), e.dev.clone()))
            .collect();
        let mut held = BTreeSet::new();
        let mut names = BTreeSet::new();
        for capture in &mut captures {
            for end in &mut capture.on {
                end.dev = self.device_meant(&end.host, &end.dev);
                let (place, shown) = (end.place.clone(), format!("{}:{}", end.host, end.dev));
                if !self.has_device(&end.host, &end.dev, &place) {
                    continue;
                }
                let key = (end.host.clone(), end.dev.clone());
                if !plugged.contains(&key) {
                    let help = "name a device that is an end of a [[link]]";
                    self.fault(&place, format!("{shown} is at no link: there is nothing to capture"), help);
                } else if !held.insert(key) {
                    self.fault(
                        &place,
                        format!("{shown} is captured already"),
                        "a device goes into one capture",
                    );
                }
            }
            if capture.name.is_empty() {
                let first = capture.on.first().map(|e| format!("{}-{}", e.host, e.dev)).unwrap_or_default();
                let first = first.replace('/', "_");
                let mut name = first.clone();
                for n in 2.. {
                    if !names.contains(&name) {
                        break;
                    }
                    name = format!("{first}-{n}");
                }
                capture.name = name;
            }
            if !names.insert(capture.name.clone()) {
                let message = format!("there is a capture \"{}\" already", capture.name);
                self.fault(&capture.place.clone(), message, "give it another name");
            }
            if capture.from > Span::ZERO && capture.from >= self.experiment.duration {
                let help = format!("duration is {}", self.experiment.duration);
                self.fault(&capture.place.clone(), "this capture begins when the run has ended", help);
            }
        }
        self.experiment.captures = captures;
    }
}

fn device(value: Val<'_>, faults: &mut Faults<'_>) -> Option<End> {
    let text = read::string("on", value, faults)?;
    let split = text.split_once(':').filter(|(host, dev)| !host.is_empty() && !dev.is_empty());
    let Some((host, dev)) = split else {
        faults.add(value.span(), format!("\"{text}\" is not a device"), "write on = \"r:eth1\"");
        return None;
    };
    let place = faults.place(value.span());
    Some(End { host: host.to_owned(), dev: dev.to_owned(), place, ..End::default() })
}
