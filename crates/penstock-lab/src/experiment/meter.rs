//! `[[meter]]`: a traffic conditioner on a device, and the names of code points.

use super::Builder;
use super::link::tables;
use super::read::{self, Faults, Table, Val};
use super::source::meant;
use super::spec::Meter;
use penstock_model::{Rate, Span};
use penstock_packet::dscp;
use penstock_sched::meter::{self, Color, Conditioner, Mark, SrTcm, TrTcm, Tsw};
use toml::de::DeValue;

/// The kinds of meters.
pub(super) const KINDS: [&str; 3] = ["srtcm", "trtcm", "tsw"];

/// A code point: its name, or its number from 0 to 63.
pub(super) fn code_point(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<u8> {
    let text = match value.get_ref() {
        DeValue::Integer(n) => n.as_str().to_owned(),
        _ => read::string(key, value, faults)?,
    };
    let found = dscp::parse(&text);
    if found.is_none() {
        let names: Vec<&str> = dscp::names().collect();
        let help = match meant(&text.to_uppercase(), &names) {
            Some(name) => format!("did you mean \"{name}\"?"),
            None => "write e.g. \"EF\", \"AF11\" to \"AF43\", \"CS0\" to \"CS7\", \"LE\", \"VA\", or 0 to 63"
                .to_owned(),
        };
        faults.add(value.span(), format!("{key}: no code point is called \"{text}\""), help);
    }
    found
}

/// What becomes of a colour: `"keep"`, `"drop"` or a code point.
fn mark(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Mark> {
    match value.get_ref().as_str() {
        Some("keep") => Some(Mark::Keep),
        Some("drop") => Some(Mark::Drop),
        _ => code_point(key, value, faults).map(Mark::Dscp),
    }
}

impl Builder<'_> {
    pub(super) fn read_meters(&mut self, root: &mut Table<'_>, faults: &mut Faults<'_>) {
        for table in tables(root, "meter", "on = \"r1:eth1\", kind = \"srtcm\"", faults) {
            self.read_meter(table, faults);
        }
    }

    fn read_meter(&mut self, mut table: Table<'_>, faults: &mut Faults<'_>) {
        let place = faults.place(table.span());
        let on = table.need("on", "on = \"r1:eth1\"", faults).and_then(|v| {
            let text = read::string("on", v, faults)?;
            let split = text.split_once(':').map(|(host, dev)| (host.to_owned(), dev.to_owned()));
            if split.is_none() {
                faults.add(v.span(), "on names no device", "write on = \"r1:eth1\"");
            }
            split
        });
        let dscp = table.take("dscp").map_or(Vec::new(), |v| {
            read::list(v).into_iter().filter_map(|v| code_point("dscp", v, faults)).collect()
        });
        let aware = table.take("aware").and_then(|v| read::boolean("aware", v, faults)).unwrap_or(false);
        let marks = Color::ALL.map(|color| {
            table.take(color.name()).and_then(|v| mark(color.name(), v, faults)).unwrap_or(Mark::Keep)
        });
        let meter = table.need("kind", "kind = \"srtcm\"", faults).and_then(|v| {
            let kind = read::string("kind", v, faults)?;
            let found = match kind.as_str() {
                "srtcm" => {
                    let (cir, cbs, ebs) = (
                        rate("cir", &mut table, faults),
                        burst("cbs", &mut table, faults),
                        burst("ebs", &mut table, faults),
                    );
                    Some(meter::Meter::SrTcm(SrTcm::new(cir?, cbs?, ebs?)))
                }
                "trtcm" => {
                    let (cir, cbs) = (rate("cir", &mut table, faults), burst("cbs", &mut table, faults));
                    let (pir, pbs) = (rate("pir", &mut table, faults), burst("pbs", &mut table, faults));
                    ordered(cir?, pir?, &table, faults);
                    Some(meter::Meter::TrTcm(TrTcm::new(cir?, cbs?, pir?, pbs?)))
                }
                "tsw" => {
                    let (cir, pir) = (rate("cir", &mut table, faults), rate("pir", &mut table, faults));
                    let window = table.need("window", "window = \"1s\"", faults);
                    let window = window.and_then(|v| Some((v.span(), read::time("window", v, faults)?)));
                    ordered(cir?, pir?, &table, faults);
                    let (span, window) = window?;
                    if window <= Span::ZERO {
                        faults.add(span, "window is 0", "write window = \"1s\"");
                        return None;
                    }
                    Some(meter::Meter::Tsw(Tsw::new(cir?, pir?, window.as_ns() as u64)))
                }
                _ => None,
            };
            if !KINDS.contains(&kind.as_str()) {
                let help = format!("there are \"{}\"", KINDS.join("\", \""));
                let help = meant(&kind, &KINDS).map_or(help, |name| format!("did you mean \"{name}\"?"));
                faults.add(v.span(), format!("no meter is called \"{kind}\""), help);
            }
            Some((kind, found?))
        });
        // What a fault above has left unread would be faulted twice.
        let Some((kind, meter)) = meter else { return };
        table.finish(faults);
        let Some((host, dev)) = on else { return };
        let conditioner = Conditioner { dscp, aware, meter, marks };
        self.experiment.meters.push(Meter { place, host, dev, kind, conditioner });
    }

    pub(super) fn finish_meters(&mut self) {
        for mut meter in std::mem::take(&mut self.experiment.meters) {
            meter.dev = self.device_meant(&meter.host, &meter.dev);
            self.has_device(&meter.host, &meter.dev, &meter.place);
            self.experiment.meters.push(meter);
        }
    }
}

fn rate(key: &'static str, table: &mut Table<'_>, faults: &mut Faults<'_>) -> Option<Rate> {
    let value = table.need(key, &format!("{key} = \"1mbit\""), faults)?;
    read::rate(key, value, faults)
}

fn burst(key: &'static str, table: &mut Table<'_>, faults: &mut Faults<'_>) -> Option<u64> {
    let value = table.need(key, &format!("{key} = \"10k\""), faults)?;
    let bytes = read::size(key, value, faults)?;
    if bytes > 1 << 32 {
        faults.add(value.span(), format!("{key} is out of range"), "write at most 4g");
        return None;
    }
    Some(bytes)
}

fn ordered(cir: Rate, pir: Rate, table: &Table<'_>, faults: &mut Faults<'_>) {
    if pir.bytes_per_s() < cir.bytes_per_s() {
        faults.add(table.span(), "pir is less than cir", "the peak rate is the larger one (RFC 2698)");
    }
}
