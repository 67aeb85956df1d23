//! What holds of every qdisc of a kind, whatever its parameters: rules and tools ask these instead of the kind's name.
//!
//! Each field must be given for each kind, so a new kind cannot be forgotten; where a tool's answer hangs on one, it matches
//! on the enum without `_`.

/// The properties of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits {
    /// Where its classes come from.
    pub classes: Classes,
    /// How a packet finds its class.
    pub sorting: Sorting,
    /// Whether filters can be attached to it: `tcf_block` is there.
    pub takes_filters: bool,
    /// Where a rate is given that it does not exceed.
    pub limits_rate: LimitsRate,
    /// What holds the packets, and how.
    pub queue: Holds,
    /// Unit of the `limit` that a dump of it shows.
    pub limit: Limit,
    /// Whether it gives a packet whenever it is asked and holds one.
    pub work_conserving: bool,
}

/// Where the classes of a kind come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Classes {
    /// It has none.
    None,
    /// One inner qdisc; whatever class one names, it is that (tbf, red).
    Inner,
    /// They are numbered from 1 and come with the qdisc (prio's bands).
    Fixed,
    /// `tc class add` makes them (htb).
    Made,
    /// They are the transmit queues of the device (mq).
    Queues,
    /// They are flows that come and go with the packets (fq_codel).
    Flows,
    /// A table whose entries `tc class change` sets, above one inner qdisc (dsmark).
    Table,
    /// The two directions of a device, for filters (clsact).
    Hooks,
}

/// How a packet finds its class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sorting {
    /// There is nothing to choose.
    Nothing,
    /// Filters lead from the qdisc down to a leaf. What none sorts goes to the class that the option `default` names, and without one: is sent
    /// at once (`direct`), or dropped.
    Tree {
        /// htb's direct queue.
        direct: bool,
    },
    /// Filters of the qdisc choose; what none sorts is dropped (drr).
    Flat,
    /// Filters of the qdisc choose, else the band that `priomap` gives the packet's priority (prio).
    Priority,
    /// Marks, priorities and code points name one of its tins (cake), which are no classes: `sch::cake::Which` tells.
    Tins,
    /// In a way of its own, which `explain` does not follow.
    Own,
}

/// Where a rate is given that a qdisc does not exceed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitsRate {
    /// It sends as fast as it is asked.
    No,
    /// In this option of the qdisc.
    Qdisc(&'static str),
    /// In its classes: this option of a class, names with `/` between from the outermost, is the most that class sends; `None` where
    /// that hangs on other classes.
    Classes(Option<&'static str>),
    /// It stands for a line with a rate of its own (netem).
    Emulates,
    /// By gates or credit (taprio, cbs), or by connections elsewhere (atm).
    Otherwise,
}

/// What holds the packets of a qdisc, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// Nothing does: they pass or are gone (ingress, blackhole).
    Nothing,
    /// The qdiscs in its classes.
    Classes,
    /// First in, first out, until it is full.
    Fifo,
    /// Bands of such, each before the next (pfifo_fast).
    Bands,
    /// It drops or marks before it is full, or shares among flows: queue management.
    Managed,
    /// Until their time has come, or somebody says so (netem, etf, plug).
    Delayed,
}

/// Unit of the `limit` in a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// A dump shows none.
    None,
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// `noop`, `noqueue` and whatever no kind is called.
pub const NOTHING: Traits = Traits {
    classes: Classes::None,
    sorting: Sorting::Nothing,
    takes_filters: false,
    limits_rate: LimitsRate::No,
    queue: Holds::Nothing,
    limit: Limit::None,
    work_conserving: true,
};

impl Sorting {
    /// Whether packets are told apart in a way that can be followed from the dump alone.
    pub const fn is_followed(self) -> bool {
        match self {
            Sorting::Tree { .. } | Sorting::Flat | Sorting::Priority => true,
            Sorting::Nothing | Sorting::Tins | Sorting::Own => false,
        }
    }
}

impl Traits {
    /// Whether users put qdiscs into its classes and packets are told apart for them: htb, prio, mq, but not tbf or fq_codel.
    pub const fn is_classful(&self) -> bool {
        match self.classes {
            Classes::Fixed | Classes::Made | Classes::Queues => true,
            Classes::None | Classes::Inner | Classes::Flows | Classes::Table | Classes::Hooks => false,
        }
    }
    /// Whether it holds another qdisc that can be put there without making a class first.
    pub const fn holds_another(&self) -> bool {
        matches!(self.classes, Classes::Inner | Classes::Fixed | Classes::Table)
    }
    /// Whether it is a shaper: some rate of the user's is not exceeded.
    pub const fn is_shaper(&self) -> bool {
        matches!(self.limits_rate, LimitsRate::Qdisc(_) | LimitsRate::Classes(_))
    }
}
