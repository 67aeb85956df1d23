//! Where the qdisc of a case stands: at the root of what is recorded, or in a class of another kind.

use super::dice::Dice;
use super::kinds::Service;

/// A place for the qdisc.
pub struct Place {
    /// `$PARENT` or a class.
    at: &'static str,
}

/// Its handle, wherever it stands: so the commands of one case mean the same kind in another.
pub const HANDLE: &str = "1:";

impl Place {
    /// The command that makes or changes the qdisc there.
    pub fn qdisc(&self, verb: &str, words: &str) -> String {
        format!("qdisc {verb} dev $DEV {} handle {} {words}", self.at, HANDLE)
    }
}

/// A class of the qdisc.
pub fn class(minor: u64) -> String {
    format!("{HANDLE}{minor:x}")
}

/// Chooses a place; in `below` of 100 cases it is a class, whose qdisc `setup` then makes first.
pub fn choose(d: &mut Dice, s: &Service, below: u32, setup: &mut Vec<String>) -> Place {
    if !d.chance(below) {
        return Place { at: "$PARENT" };
    }
    let bits = (s.rate * 8 * d.pick(&[1, 2, 4]) / 2).clamp(16_000, 4_000_000_000);
    let map =
        |d: &mut Dice| (0..16).map(|_| if d.chance(80) { "0" } else { "1" }).collect::<Vec<_>>().join(" ");
    // A handle for each kind: a command that another case has for one of them is not taken for one of another kind.
    let at = match d.range(0, 5) {
        0 | 1 => {
            setup.push("qdisc add dev $DEV $PARENT handle 9: htb default 1".to_owned());
            let ceil = bits * d.pick(&[1, 1, 3]);
            setup.push(format!(
                "class add dev $DEV parent 9: classid 9:1 htb rate {bits}bit ceil {ceil}bit burst {} cburst {}",
                d.scale(1600, 20_000),
                d.scale(1600, 20_000)
            ));
            "parent 9:1"
        }
        2 | 3 => {
            setup.push(format!("qdisc add dev $DEV $PARENT handle 8: prio bands 2 priomap {}", map(d)));
            "parent 8:1"
        }
        4 => {
            setup.push(format!(
                "qdisc add dev $DEV $PARENT handle 7: tbf rate {bits}bit burst {} limit {}",
                d.scale(1600, 20_000),
                d.scale(4000, 60_000)
            ));
            "parent 7:1"
        }
        _ => {
            setup.push(format!(
                "qdisc add dev $DEV $PARENT handle 6: ets bands 2 quanta {} {} priomap {}",
                d.scale(300, 4000),
                d.scale(300, 4000),
                map(d)
            ));
            "parent 6:1"
        }
    };
    Place { at }
}
