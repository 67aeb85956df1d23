//! What a `tc` command asks of the kernel, and what the kernel answers: requests, dumps, statistics.
//!
//! Follows: linux v6.12 `include/uapi/linux/rtnetlink.h` (RTM_NEWQDISC … RTM_GETCHAIN), `gen_stats.h`.

use crate::handle::Handle;
use crate::options::Options;

/// What to do with the object; tc's verbs with their netlink flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verb {
    /// `add`: NLM_F_CREATE | NLM_F_EXCL.
    Add,
    /// `change`: no flags.
    Change,
    /// `replace`: NLM_F_CREATE | NLM_F_REPLACE.
    Replace,
    /// `change … gred setup`: NLM_F_CREATE.
    Create,
    /// `link`: NLM_F_REPLACE (qdiscs only).
    Link,
    /// `del`.
    Del,
}

/// RTM_NEWQDISC and RTM_DELQDISC.
#[derive(Clone, PartialEq, Debug)]
pub struct QdiscRequest {
    /// Verb.
    pub verb: Verb,
    /// The qdisc's own handle; [`Handle::UNSPEC`] lets the kernel choose.
    pub handle: Handle,
    /// [`Handle::ROOT`], [`Handle::INGRESS`], a classid, or [`Handle::UNSPEC`] when not given.
    pub parent: Handle,
    /// Kind: `htb`, `sfq`, …; `None` when the command names none (`del`).
    pub kind: Option<String>,
    /// The kind's options; `None` when no option word was given.
    pub options: Option<Options>,
    /// Rate estimator: interval and ewma exponents (`est`/`estimator`), as `struct tc_estimator`.
    pub estimator: Option<(i8, u8)>,
    /// Size table (`stab`): `mtu tsize mpu overhead linklayer`.
    pub stab: Option<Options>,
    /// `ingress_block`: the shared block of filters that incoming packets meet.
    pub ingress_block: Option<u32>,
    /// `egress_block`: the same for outgoing packets.
    pub egress_block: Option<u32>,
}

/// RTM_NEWTCLASS and RTM_DELTCLASS.
#[derive(Clone, PartialEq, Debug)]
pub struct ClassRequest {
    /// Verb.
    pub verb: Verb,
    /// The class's id; [`Handle::UNSPEC`] lets the kernel choose.
    pub classid: Handle,
    /// The parent: a classid, a qdisc's handle, [`Handle::ROOT`], or [`Handle::UNSPEC`] when not given.
    pub parent: Handle,
    /// Kind of the qdisc the class belongs to.
    pub kind: Option<String>,
    /// The class's options; `None` when no option word was given.
    pub options: Option<Options>,
    /// Rate estimator.
    pub estimator: Option<(i8, u8)>,
}

/// RTM_NEWTFILTER and RTM_DELTFILTER; RTM_NEWCHAIN and RTM_DELCHAIN, of whose fields `protocol`, `prio` and `handle` do
/// not matter.
#[derive(Clone, PartialEq, Debug)]
pub struct FilterRequest {
    /// Verb.
    pub verb: Verb,
    /// The shared block it is about instead of a device; 0 for none.
    pub block: u32,
    /// Qdisc or class the filter hangs on; [`Handle::UNSPEC`] is the root qdisc.
    pub parent: Handle,
    /// Ethertype in host order (0x0800 for `ip`); 0x0003 (ETH_P_ALL) for `all`.
    pub protocol: u16,
    /// `prio`/`pref`; 0 lets the kernel number it.
    pub prio: u16,
    /// Chain index, 0 when not given.
    pub chain: Option<u32>,
    /// The filter's handle as the kind reads it (fw: the mark; u32: htid:hash:node); 0 when not given.
    pub handle: u32,
    /// Kind: `u32`, `fw`, …; `None` when the command names none.
    pub kind: Option<String>,
    /// The kind's options. The actions of a filter are its `action`, a list (`sched::act` says of what), or its `police`.
    pub options: Option<Options>,
    /// Rate estimator of its actions.
    pub estimator: Option<(i8, u8)>,
}

/// What to do with actions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ActionVerb {
    /// `add`: RTM_NEWACTION, NLM_F_CREATE | NLM_F_EXCL.
    Add,
    /// `change` and `replace`: NLM_F_CREATE | NLM_F_REPLACE.
    Replace,
    /// `del`: RTM_DELACTION.
    Del,
    /// `flush`: RTM_DELACTION, NLM_F_ROOT; the list names one kind.
    Flush,
    /// `get`: RTM_GETACTION.
    Get,
}

/// RTM_NEWACTION, RTM_DELACTION, RTM_GETACTION.
#[derive(Clone, PartialEq, Debug)]
pub struct ActionRequest {
    /// Verb.
    pub verb: ActionVerb,
    /// The actions in order, as `sched::act` says.
    pub actions: Vec<Options>,
}

/// RTM_GETACTION with NLM_F_DUMP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActionDump {
    /// The kind whose table is shown.
    pub kind: String,
    /// Only those used in the last so many milliseconds; 0: all.
    pub since_ms: u32,
}

/// Counters of a qdisc or a class: `struct gnet_stats_basic`, `gnet_stats_queue`, `gnet_stats_rate_est`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u32,
    /// Times the object could not send although asked, or a limit was passed.
    pub overlimits: u32,
    /// Packets handed back by the device.
    pub requeues: u32,
    /// Packets queued.
    pub qlen: u32,
    /// Bytes queued.
    pub backlog: u32,
    /// Estimated rate, bytes per second and packets per second, where an estimator runs.
    pub rate: Option<(u64, u64)>,
}

impl Stats {
    /// The counters by name, for the dump of an action.
    pub fn to_options(self) -> Options {
        let mut o = Options::new().with("bytes", self.bytes).with("packets", self.packets);
        for (name, value) in [
            ("drops", self.drops),
            ("overlimits", self.overlimits),
            ("requeues", self.requeues),
            ("qlen", self.qlen),
            ("backlog", self.backlog),
        ] {
            o = o.with(name, value);
        }
        if let Some((bytes, packets)) = self.rate {
            o = o.with("rate", bytes).with("pps", packets);
        }
        o
    }
    /// What [`Stats::to_options`] wrote.
    pub fn from_options(o: &Options) -> Stats {
        let small = |name| o.u32(name).unwrap_or(0);
        Stats {
            bytes: o.u64("bytes").unwrap_or(0),
            packets: o.u64("packets").unwrap_or(0),
            drops: small("drops"),
            overlimits: small("overlimits"),
            requeues: small("requeues"),
            qlen: small("qlen"),
            backlog: small("backlog"),
            rate: o.u64("rate").zip(o.u64("pps")),
        }
    }
}

/// One qdisc, as RTM_GETQDISC gives it.
#[derive(Clone, PartialEq, Debug)]
pub struct QdiscDump {
    /// Kind.
    pub kind: &'static str,
    /// Its handle.
    pub handle: Handle,
    /// Its parent: [`Handle::ROOT`], [`Handle::INGRESS`] or a classid.
    pub parent: Handle,
    /// References, printed as `refcnt` where it is not 1.
    pub refcnt: u32,
    /// The kind's options as the kernel reports them.
    pub options: Options,
    /// Counters.
    pub stats: Stats,
    /// The kind's own counters.
    pub xstats: Option<Options>,
}

/// Which counters the kernel gives of a class: what its kind's `dump_stats` copies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Counters {
    /// `gnet_stats_copy_basic` and `gnet_stats_copy_queue`.
    All,
    /// `gnet_stats_copy_queue` alone.
    Queue,
    /// None: there is no `dump_stats`.
    None,
}

/// One class, as RTM_GETTCLASS gives it.
#[derive(Clone, PartialEq, Debug)]
pub struct ClassDump {
    /// Kind of its qdisc.
    pub kind: &'static str,
    /// Its id.
    pub classid: Handle,
    /// Its parent: [`Handle::ROOT`] or a classid.
    pub parent: Handle,
    /// Handle of the qdisc in it, where it has one.
    pub leaf: Option<Handle>,
    /// Options.
    pub options: Options,
    /// Which of `stats` there are.
    pub counters: Counters,
    /// Counters.
    pub stats: Stats,
    /// The kind's own counters.
    pub xstats: Option<Options>,
}

/// One filter, as RTM_GETTFILTER gives it. A priority's header has `handle` 0 and no options.
#[derive(Clone, PartialEq, Debug)]
pub struct FilterDump {
    /// Kind.
    pub kind: &'static str,
    /// The shared block it is in; 0 for one of a qdisc's own.
    pub block: u32,
    /// What it hangs on.
    pub parent: Handle,
    /// Ethertype, as in [`FilterRequest::protocol`].
    pub protocol: u16,
    /// `pref`.
    pub prio: u16,
    /// Chain index.
    pub chain: u32,
    /// The filter's handle.
    pub handle: u32,
    /// Options; `None` where the kernel sends none at all.
    pub options: Option<Options>,
}

/// One chain of filters, as RTM_GETCHAIN gives it.
#[derive(Clone, PartialEq, Debug)]
pub struct ChainDump {
    /// The qdisc it is of; [`Handle::UNSPEC`] in a shared block.
    pub parent: Handle,
    /// The shared block it is in; 0 for one of a qdisc's own.
    pub block: u32,
    /// Its index.
    pub chain: u32,
    /// Whether a command made it: it then stays when its filters go. Linux does not tell.
    pub explicit: bool,
    /// Kind and options of its template, where it has one.
    pub template: Option<(&'static str, Options)>,
}
