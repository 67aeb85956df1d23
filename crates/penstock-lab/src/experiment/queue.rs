//! `queue = { kind = "ns2_red", … }` of a link or an end.

use super::forms;
use super::read::{self, Faults, Table, Val};
use super::source::meant;
use super::spec::Queue;
use penstock_model::Options;
use penstock_model::time::split_number;
use penstock_sched::ns2::{self, Kind};

/// Reads the queue before a link.
pub(super) fn read(value: Val<'_>, faults: &mut Faults<'_>) -> Option<Queue> {
    let mut table = Table::of(value, "queue", &forms::QUEUE, faults)?;
    let kind = table.need("kind", "kind = \"ns2_red\"", faults)?;
    let name = read::string("kind", kind, faults)?;
    let Some(found) = ns2::find(&name) else {
        let known: Vec<&str> = ns2::KINDS.iter().map(|k| k.spec.id).collect();
        let help = match meant(&name, &known) {
            Some(word) => format!("did you mean \"{word}\"?"),
            None => {
                format!("there are \"{}\"; those of Linux are set by tc in a setup", known.join("\", \""))
            }
        };
        faults.add(kind.span(), format!("there is no queue \"{name}\""), help);
        return None;
    };
    let place = faults.place(value.span());
    let before = faults.list.len();
    let mut options = Options::new();
    // Shares are of the limit, so that comes first.
    let mut words: Vec<_> = found.words.to_vec();
    words.sort_by_key(|w| w.name != "limit");
    for word in words {
        let Some(value) = table.take(word.name) else { continue };
        match word.value {
            Kind::Whole => {
                if let Some(n) = read::integer(word.name, value, 0..1 << 32, faults) {
                    options.set(word.name, (n as u32).into());
                }
            }
            Kind::Flag => {
                if let Some(on) = read::boolean(word.name, value, faults) {
                    options.set(word.name, u32::from(on).into());
                }
            }
            Kind::Time => {
                if let Some(span) = read::time(word.name, value, faults) {
                    options.set(word.name, span.as_secs_f64().to_string().into());
                }
            }
            Kind::Real | Kind::Share => {
                let limit = options.u32("limit").unwrap_or(50);
                if let Some(number) = number(word.name, value, word.value == Kind::Share, limit, faults) {
                    options.set(word.name, number.into());
                }
            }
        }
    }
    table.finish(faults);
    (faults.list.len() == before).then_some(Queue { kind: found.spec.id, options, place })
}

/// A number as text; where it may be a share, `"25%"` is a quarter of the limit.
fn number(key: &str, value: Val<'_>, share: bool, limit: u32, faults: &mut Faults<'_>) -> Option<String> {
    let text = read::number(value).or_else(|| value.get_ref().as_str().map(str::to_owned));
    let (digits, negative) =
        match text.as_deref().map(|t| t.strip_prefix('-').map_or((t, false), |d| (d, true))) {
            Some((digits, negative)) => (digits.to_owned(), negative),
            None => (String::new(), false),
        };
    let found = match split_number(&digits) {
        Some((number, "")) => Some(number),
        Some((number, "%")) if share => Some(number / 100.0 * f64::from(limit)),
        _ => None,
    };
    if found.is_none() {
        let help = match share {
            true => format!("write packets or a share of the limit: {key} = 18 or {key} = \"25%\""),
            false => format!("write e.g. {key} = 0.002"),
        };
        faults.add(value.span(), format!("{key} is not a number"), help);
    }
    found.map(|n| if negative { -n } else { n }.to_string())
}
