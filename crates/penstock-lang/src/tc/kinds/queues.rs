//! Words mqprio and taprio share: which priority is which traffic class, and which queues each has.
//!
//! Follows: iproute2 6.1.0 `tc/q_mqprio.c`, `tc/q_taprio.c`; 6.12.0 for `fp`.

use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::num;
use crate::tc::say::{Say, Unit};
use penstock_model::Options;

/// `TC_QOPT_MAX_QUEUE`.
pub const MAX_QUEUES: usize = 16;

/// Takes words as long as `read` can use them, 16 at most.
pub fn several<T>(args: &mut Args, read: impl Fn(&str) -> Option<T>) -> Vec<T> {
    let mut values = Vec::new();
    while values.len() < MAX_QUEUES {
        let Some(value) = args.peek_text().and_then(&read) else { break };
        values.push(value);
        args.next_word();
    }
    values
}

/// `map`: traffic classes by priority; those not given are 0.
pub fn map(args: &mut Args) -> Vec<u8> {
    let mut map = several(args, |text| num::u8(text, 10));
    map.resize(MAX_QUEUES, 0);
    map
}

/// What `queues` said: count and offset of each traffic class.
#[derive(Default)]
pub struct Queues {
    ranges: [(u16, u16); MAX_QUEUES],
    /// How many pairs were read.
    pub pairs: usize,
}

impl Queues {
    /// Reads `COUNT@OFFSET` words from the first class on; a word that is only a count leaves that behind.
    pub fn read(&mut self, args: &mut Args) {
        let mut class = 0;
        while class < MAX_QUEUES {
            let Some(text) = args.peek_text() else { break };
            let mut parts = text.split('@').filter(|part| !part.is_empty());
            let Some(count) = parts.next().and_then(|part| num::u16(part, 10)) else { break };
            self.ranges[class].0 = count;
            let Some(offset) = parts.next().and_then(|part| num::u16(part, 10)) else { break };
            self.ranges[class].1 = offset;
            args.next_word();
            (class, self.pairs) = (class + 1, self.pairs + 1);
        }
    }
    /// As netlink carries it.
    pub fn options(&self) -> Vec<Options> {
        let range =
            |&(count, offset): &(u16, u16)| Options::new().with("count", count).with("offset", offset);
        self.ranges.iter().map(range).collect()
    }
}

/// `fp`: express 1 or preemptible 2, by traffic class.
pub fn preemption(args: &mut Args) -> Vec<u8> {
    several(args, |text| match text {
        "E" => Some(1),
        "P" => Some(2),
        _ => None,
    })
}

/// Prints the values of `fp`, in an array that has been opened, and closes it.
pub fn print_preemption(o: &Options, out: &mut Out) {
    for &fp in o.bytes("fp").unwrap_or(&[]) {
        let name = match fp {
            1 => "E",
            2 => "P",
            _ => "?",
        };
        out.text_item(name, format_args!(" {name}"));
    }
    out.close_array();
}

/// Says `num_tc`, `map` and `queues`.
pub fn say<'a, 's>(say: &'s mut Say<'a>) -> &'s mut Say<'a> {
    let o = say.o;
    let number = say.n("num_tc") as usize;
    say.given("num_tc", Unit::Plain).list("map", o.bytes("map"));
    let range = |r: &Options| format!("{}@{}", r.u32("count").unwrap_or(0), r.u32("offset").unwrap_or(0));
    let ranges: Vec<String> = o.list("queues").iter().take(number).map(range).collect();
    say.list("queues", Some(ranges).filter(|ranges| !ranges.is_empty()))
}
