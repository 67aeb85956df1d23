//! What classes count of each other's packets, counted a second time.
//!
//! A class above others is charged for what they send: `htb_charge_class` and `cbq_update` walk upwards when a packet has left, so what
//! tc shows of an inner class is the sum over those below it. Here each packet is counted once, at the door of the qdisc in its own
//! class ([`Node`](crate::Node)), and the sums are made when somebody asks: so the two can disagree, and where they do the fault is
//! ours. Classes come and go, a leaf becomes an inner class and back: what went before is carried along apart.
//!
//! What Linux counts of losses, and what is compared with what each qdisc was given and gave:
//!
//! | counter | counts | not |
//! |---|---|---|
//! | drops of a class of htb or cbq (`cl->drops`, `cl->qstats.drops`) | what its own queue refused (`htb_enqueue`, `cbq_enqueue`) | what that queue dropped later; anything below |
//! | drops of the qdisc, 6.12 | all that was lost in it and below | what an action took, what a reset emptied |
//! | drops of the qdisc, 2.6.35 | what was refused on its way in | what was dropped later |
//! | overlimits of htb and its classes, 6.12 | each time a class, inner ones too, went over its ceiling | |
//! | overlimits of a class of cbq | each time it might not send and nobody lent; the qdisc's are times it sent nothing | |
//!
//! So an inner class of htb shows what it was refused while it was a leaf.
//!
//! `drr`, `prio` and their like have one row of classes; nobody is charged for another there, and the drops of a class are those of the
//! qdisc in it.

use penstock_model::Handle;
use std::collections::BTreeMap;

/// Packets and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, as the qdisc counts them.
    pub bytes: u64,
}

impl Count {
    /// One packet of so many bytes.
    pub(crate) fn one(bytes: u32) -> Count {
        Count { packets: 1, bytes: u64::from(bytes) }
    }
    pub(crate) fn add(&mut self, more: Count) {
        self.packets = self.packets.wrapping_add(more.packets);
        self.bytes = self.bytes.wrapping_add(more.bytes);
    }
    pub(crate) fn less(self, other: Count) -> Count {
        Count {
            packets: self.packets.wrapping_sub(other.packets),
            bytes: self.bytes.wrapping_sub(other.bytes),
        }
    }
}

/// What a class says, and what was counted beside it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Charged {
    /// Its id.
    pub classid: Handle,
    /// The class that is charged for what this one sends; none where nobody is.
    pub above: Option<Handle>,
    /// What tc shows.
    pub shown: Count,
    /// What it shows on account of its own queue: what has left it, and in a kernel that counts what comes (2.6.35's htb) what has come.
    pub own: Count,
    /// What has left its own queue.
    pub sent: Count,
    /// What classes below it have sent that are gone or do not share with it any more.
    pub gone: Count,
    /// What it had sent, with those below, before it shared with the class above.
    pub before: Count,
    /// What it has lent and borrowed, where both are counted at each packet.
    pub lent: Option<Lent>,
    /// What its own queue has refused. Linux counts a drop in the class that it came to and in no class above.
    pub drops: Refused,
}

/// Packets that the queue of a class has refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// The drops that tc shows of the class.
    pub shown: u32,
    /// Counted at its queue's door: those for which it said that one is dropped, whichever it was.
    pub own: u64,
}

/// How often a class has sent or lent on its own allowance, and on that of one above.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lent {
    /// Packets it has sent: a super-packet is charged once.
    pub sent: u64,
    /// Packets on its own allowance, whose soever they were.
    pub lends: u32,
    /// Packets on the allowance of one above.
    pub borrows: u32,
    /// What classes below it had borrowed that are gone.
    pub gone: u32,
}

/// A sentence for each class that does not show the sum of what it and those below it have sent, or not what its queue has refused.
pub fn miscounts(classes: &[Charged]) -> Vec<String> {
    let mut below: BTreeMap<Handle, Vec<&Charged>> = BTreeMap::new();
    for class in classes {
        if let Some(above) = class.above {
            below.entry(above).or_default().push(class);
        }
    }
    let below_of = |class: &Charged| below.get(&class.classid).map_or(&[][..], Vec::as_slice);
    let mut found = Vec::new();
    for class in classes {
        let mut children = class.gone;
        below_of(class).iter().for_each(|child| children.add(total(child, &below).less(child.before)));
        let mut want = class.own;
        want.add(children);
        let Charged { classid, shown, .. } = class;
        if *shown != want {
            found.push(format!(
                "class {classid}: shows {} packets of {} bytes, but its own queue makes {} of {} and those below it {} of {}",
                shown.packets, shown.bytes, class.own.packets, class.own.bytes, children.packets, children.bytes
            ));
        }
        let Refused { shown, own } = class.drops;
        if shown != own as u32 {
            found.push(format!("class {classid}: shows {shown} drops, but its own queue has refused {own}"));
        }
        let Some(lent) = class.lent else { continue };
        let asked = below_of(class).iter().filter_map(|child| child.lent).map(|l| l.borrows);
        let asked = asked.fold(lent.gone, u32::wrapping_add).wrapping_add(lent.sent as u32);
        if lent.lends.wrapping_add(lent.borrows) != asked {
            found.push(format!(
                "class {classid}: lent {} and borrowed {}, but sent or was asked for {asked}",
                lent.lends, lent.borrows
            ));
        }
    }
    found
}

/// What a class and those below it have sent.
fn total(class: &Charged, below: &BTreeMap<Handle, Vec<&Charged>>) -> Count {
    let mut all = class.sent;
    all.add(class.gone);
    for child in below.get(&class.classid).map_or(&[][..], Vec::as_slice) {
        all.add(total(child, below).less(child.before));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_add_up_is_named() {
        let count = |packets| Count { packets, bytes: packets * 100 };
        let class = |minor, above: Option<u16>, sent, shown| Charged {
            classid: Handle::new(1, minor),
            above: above.map(|a| Handle::new(1, a)),
            shown: count(shown),
            own: count(sent),
            sent: count(sent),
            ..Charged::default()
        };
        let mut all = vec![
            class(1, None, 0, 12),
            class(2, Some(1), 0, 5),
            class(3, Some(2), 5, 5),
            class(4, Some(1), 7, 7),
        ];
        assert_eq!(miscounts(&all), Vec::<String>::new());
        all[0].shown.bytes += 1;
        let said = miscounts(&all);
        let want = "class 1:1: shows 12 packets of 1201 bytes, but its own queue makes 0 of 0 and those below it 12 of 1200";
        assert_eq!(said, [want]);
        all[0].shown.bytes -= 1;
        // One that is gone has left what it sent with its parent; one that came to share late has not.
        all.remove(3);
        assert_eq!(miscounts(&all).len(), 1);
        all[0].gone = count(7);
        assert_eq!(miscounts(&all), Vec::<String>::new());
        all[1].before = count(2);
        assert_eq!(miscounts(&all).len(), 1);
        all[0].shown = count(10);
        assert_eq!(miscounts(&all), Vec::<String>::new());
        // Who borrows asks the one above.
        all[2].lent = Some(Lent { sent: 5, lends: 3, borrows: 2, gone: 0 });
        all[1].lent = Some(Lent { sent: 0, lends: 2, borrows: 0, gone: 0 });
        assert_eq!(miscounts(&all), Vec::<String>::new());
        all[1].lent = Some(Lent { sent: 0, lends: 1, borrows: 0, gone: 0 });
        assert_eq!(miscounts(&all), ["class 1:2: lent 1 and borrowed 0, but sent or was asked for 2"]);
        all[1].lent = None;
        // A drop belongs to the class that it came to, not to the one above.
        all[2].drops = Refused { shown: 3, own: 3 };
        assert_eq!(miscounts(&all), Vec::<String>::new());
        all[1].drops.shown = 3;
        assert_eq!(miscounts(&all), ["class 1:2: shows 3 drops, but its own queue has refused 0"]);
    }
}
