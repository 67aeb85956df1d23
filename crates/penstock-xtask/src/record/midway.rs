//! Commands in the midst of the traffic: changes, replacements, deletions of what stands, additions to it.

use super::dice::Dice;
use serde_json::{Value, json};

/// Puts commands among the packets of `spec`: its own things deleted, and those of `other`, a case of the same kind, made
/// of them.
pub fn weave(d: &mut Dice, mut spec: Value, other: &Value) -> Value {
    let lines = |v: &Value| -> Vec<String> {
        v["setup"].as_array().into_iter().flatten().filter_map(|l| l.as_str().map(str::to_owned)).collect()
    };
    let mut commands: Vec<String> = lines(other).iter().filter_map(|l| renewed(d, l)).collect();
    commands
        .extend(lines(&spec).iter().filter_map(|l| if d.chance(50) { renewed(d, l) } else { removed(l) }));
    if commands.is_empty() {
        return spec;
    }
    let Some(packets) = spec["packets"].as_array_mut() else { return spec };
    let end = packets.iter().filter_map(|p| p["t_us"].as_f64()).fold(0.0, f64::max) as u64;
    for _ in 0..d.range(1, 4) {
        let at = d.range(0, end + end / 4 + 100);
        let entry = json!({"t_us": at, "run": d.pick(&commands)});
        let place = d.range(0, packets.len() as u64) as usize;
        packets.insert(place, entry);
    }
    spec
}

/// The command that makes a thing, as one that changes or replaces it.
pub fn renewed(d: &mut Dice, line: &str) -> Option<String> {
    let verb = if line.starts_with("filter add") {
        // A filter is told from others by its priority; without a handle a change finds none.
        d.pick(&["add", "add", "replace"])
    } else {
        d.pick(&["change", "replace", "replace"])
    };
    let (object, rest) = line.split_once(" add ")?;
    // A root that goes while packets wait lets the kernel sleep until nobody is in it.
    let stays = object != "qdisc" || !rest.contains("$PARENT") || verb == "change";
    let verb = if stays { verb } else { "change" };
    Some(format!("{object} {verb} {rest}"))
}

/// The command that makes a thing, as one that removes it.
pub fn removed(line: &str) -> Option<String> {
    let (object, rest) = line.split_once(" add ")?;
    let word = |name: &str| {
        let mut words = rest.split(' ').skip_while(move |w| *w != name);
        words.next();
        words.next().map(str::to_owned)
    };
    match object {
        "qdisc" if !rest.contains("$PARENT") => {
            Some(format!("qdisc del dev $DEV parent {}", word("parent")?))
        }
        "class" => Some(format!("class del dev $DEV classid {}", word("classid")?)),
        "filter" => {
            let (parent, protocol) = (word("parent")?, word("protocol")?);
            Some(format!("filter del dev $DEV parent {parent} protocol {protocol} prio {}", word("prio")?))
        }
        _ => None,
    }
}
