//! What matches ask of packets whose words are kept as they were read ([`Match::Worded`](super::Match::Worded)).
//!
//! Follows: linux v6.12 `include/uapi/linux/netfilter/xt_connlimit.h`, `xt_hashlimit.h`, `xt_quota.h`, `xt_time.h`,
//! `xt_recent.h`, `xt_tcpmss.h`, `xt_realm.h`, `xt_owner.h`, `xt_set.h`.

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asks {
    /// `-m connlimit`.
    Connlimit(Connlimit),
    /// `-m hashlimit`.
    Hashlimit(Hashlimit),
    /// `-m quota`.
    Quota {
        /// Bytes of IP packets that fit.
        bytes: u64,
        /// `!`.
        invert: bool,
    },
    /// `-m time`.
    Time(Times),
    /// `-m tcpmss`: the size that a SYN offers.
    Mss {
        /// First and last, bytes.
        range: (u16, u16),
        /// `!`.
        invert: bool,
    },
    /// `-m realm`.
    Realm {
        /// Realms of the route: the source's above 16 bits.
        id: u32,
        /// Bits of them that count.
        mask: u32,
        /// `!`.
        invert: bool,
    },
    /// `-m recent`.
    Recent(Recent),
    /// `-m cpu`.
    Cpu {
        /// The processor.
        cpu: u32,
        /// `!`.
        invert: bool,
    },
    /// `-m physdev`.
    Physdev(Physdev),
    /// A protocol that no packet has here: none fits.
    Never,
    /// `-m frag`.
    Frag(Frag),
    /// `-m ipv6header`.
    Ipv6Header(Ipv6Header),
    /// `-m owner`.
    Owner(Owner),
    /// `-m helper`.
    Helper {
        /// `!`.
        invert: bool,
    },
    /// `-m set`.
    Set(SetAsk),
    /// `-m rpfilter`.
    Rpfilter(Rpfilter),
    /// `-m policy`: whether packets without IPsec fit.
    Policy {
        /// `--pol none`.
        none: bool,
    },
}

/// `-m frag`: the fragment header of IPv6. `--fraglen` is read by the program alone: the kernel does not look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frag {
    /// `--fragid`: first and last identification.
    pub id: (u32, u32),
    /// Its `!`.
    pub invert_id: bool,
    /// `--fragres`: reserved bits are not set.
    pub reserved: bool,
    /// `--fragfirst`: it is the first.
    pub first: bool,
    /// `--fragmore`, `--fraglast`: whether more follow.
    pub more: Option<bool>,
}

/// `-m ipv6header`: which headers a packet has, a bit each ([`Ipv6Header::BITS`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// `--header`.
    pub headers: u8,
    /// `!`.
    pub invert: bool,
    /// `--soft`: it may have others too.
    pub soft: bool,
}

impl Ipv6Header {
    /// The headers by name, with their numbers and bits (`MASK_HOPOPTS` …); `prot` is what comes last.
    pub const BITS: [(&'static str, u8, u8); 8] = [
        ("hop-by-hop", 0, 128),
        ("ipv6-opts", 60, 64),
        ("ipv6-route", 43, 32),
        ("ipv6-frag", 44, 16),
        ("ah", 51, 8),
        ("esp", 50, 4),
        ("ipv6-nonxt", 59, 2),
        ("protocol", 255, 1),
    ];
}

/// `-m rpfilter`: whether a route back to the sender leaves by the device that the packet came in by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rpfilter {
    /// `--loose`: by any device.
    pub loose: bool,
    /// `--validmark`: the route is looked up with the packet's mark.
    pub validmark: bool,
    /// `--accept-local`: addresses of this machine may be senders.
    pub accept_local: bool,
    /// `--invert`.
    pub invert: bool,
}

/// Which side of a packet a part of a set's element is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// `src`.
    Src,
    /// `dst`.
    Dst,
}

/// How an element's counter is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// `-eq`.
    Eq,
    /// `! …-eq`.
    Ne,
    /// `-lt`.
    Lt,
    /// `-gt`.
    Gt,
}

/// A set and the sides of a packet that its elements' parts are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SetName {
    /// The set's name.
    pub name: String,
    /// By part, at most six.
    pub dirs: Vec<Direction>,
}

/// `-m set`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetAsk {
    /// `--match-set`.
    pub set: SetName,
    /// `!`.
    pub invert: bool,
    /// `--return-nomatch`: elements with `nomatch` fit, and no others.
    pub return_nomatch: bool,
    /// Whether an element's counters count the packet; false with `! --update-counters`.
    pub update_counters: bool,
    /// The same of the sets of a list.
    pub update_subcounters: bool,
    /// `--packets-eq`, `--packets-lt`, `--packets-gt`.
    pub packets: Option<(Counter, u64)>,
    /// `--bytes-eq`, `--bytes-lt`, `--bytes-gt`.
    pub bytes: Option<(Counter, u64)>,
}

/// `-j SET`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SetTarget {
    /// `--add-set`.
    pub add: Option<SetName>,
    /// `--exist`.
    pub exist: bool,
    /// `--timeout`, seconds; 0: for ever; none: the set's.
    pub timeout: Option<u32>,
    /// `--del-set`.
    pub del: Option<SetName>,
    /// `--map-set`.
    pub map: Option<SetName>,
    /// `--map-mark`.
    pub map_mark: bool,
    /// `--map-prio`.
    pub map_prio: bool,
    /// `--map-queue`.
    pub map_queue: bool,
}

/// What `-m recent` does with its list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecentOp {
    /// `--set`: the address is entered.
    Set,
    /// `--rcheck`: whether it is there.
    Rcheck,
    /// `--update`: the same, and it is seen now where it fits.
    Update,
    /// `--remove`: it is taken out.
    Remove,
}

/// `-m recent`: addresses that were seen lately, in a list that rules of one name share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recent {
    /// What is done.
    pub op: RecentOp,
    /// `!`.
    pub invert: bool,
    /// `--seconds`; 0: however long ago.
    pub seconds: u32,
    /// `--hitcount`; 0: once.
    pub hitcount: u32,
    /// `--reap`: the one that was seen longest ago goes, where that is longer than `seconds`.
    pub reap: bool,
    /// `--rttl`: the packet's TTL is that of the last.
    pub ttl: bool,
    /// `--name`. Default `DEFAULT`.
    pub name: String,
    /// `--rdest`: the destination's address.
    pub dst: bool,
    /// `--mask`: bits of the address that count. The list has that of its first rule.
    pub mask: u128,
}

/// `-m owner`: each with its `!`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Owner {
    /// `--uid-owner`: first and last.
    pub uid: Option<(u32, u32, bool)>,
    /// `--gid-owner`.
    pub gid: Option<(u32, u32, bool)>,
    /// `--socket-exists`.
    pub exists: Option<bool>,
}

/// `-m connlimit`: how many connections an address has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connlimit {
    /// So many.
    pub limit: u32,
    /// Whether it asks for no more than that.
    pub upto: bool,
    /// Bits of the address that count.
    pub mask: u128,
    /// Whether it is the destination's address.
    pub dst: bool,
}

/// `-m hashlimit`: a rate for each of many senders, receivers or both. What is in `table` is the table's, which rules of one name share: that of
/// the first of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hashlimit {
    /// `--hashlimit-name`.
    pub name: String,
    /// Whether it asks for what is above the rate.
    pub above: bool,
    /// Whether bytes are counted.
    pub bytes: bool,
    /// `--hashlimit-rate-match`: whether it counts in intervals and spends no credit.
    pub rate_match: bool,
    /// The table.
    pub table: HashTable,
}

/// `struct hashlimit_cfg3`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HashTable {
    /// Millionths of a second a packet; in bytes the cost of 16 of them.
    pub avg: u64,
    /// Packets; in bytes how often the credit is filled up.
    pub burst: u64,
    /// Whether `avg` is of bytes.
    pub bytes: bool,
    /// Bits of [`hash`].
    pub mode: u8,
    /// Bits of the source's address that count.
    pub srcmask: u128,
    /// Of the destination's.
    pub dstmask: u128,
    /// `--hashlimit-htable-size`; 0: by the machine's memory.
    pub size: u32,
    /// `--hashlimit-htable-max`; 0: eight times that.
    pub max: u32,
    /// `--hashlimit-htable-gcinterval`, ms.
    pub gc_interval: u32,
    /// `--hashlimit-htable-expire`, ms.
    pub expire: u32,
    /// `--hashlimit-rate-interval`, s; 0 without `--hashlimit-rate-match`.
    pub interval: u32,
}

/// What of a packet says whose rate it is.
pub mod hash {
    /// `dstip`.
    pub const DSTIP: u8 = 1;
    /// `dstport`.
    pub const DSTPORT: u8 = 2;
    /// `srcip`.
    pub const SRCIP: u8 = 4;
    /// `srcport`.
    pub const SRCPORT: u8 = 8;
}

/// `-m time`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// First and last second since 1970.
    pub date: (u32, u32),
    /// First and last second of a day; the first may be greater.
    pub day: (u32, u32),
    /// Days of the month, a bit each from 1 on.
    pub month: u32,
    /// Days of the week, a bit each, Monday 1.
    pub week: u32,
    /// `--contiguous`: what is past midnight belongs to the day before.
    pub contiguous: bool,
}

impl Times {
    /// Every day of a month.
    pub const EVERY_DAY: u32 = 0xffff_fffe;
}

/// `-m physdev`: by which ports a frame that a bridge has shown to the rules comes and goes. Of each option that is given, whether it has a `!`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Physdev {
    /// `--physdev-in`: a port's name, with `+` at its end the beginning of one.
    pub input: Option<(String, bool)>,
    /// `--physdev-out`.
    pub output: Option<(String, bool)>,
    /// `--physdev-is-in`.
    pub is_in: Option<bool>,
    /// `--physdev-is-out`.
    pub is_out: Option<bool>,
    /// `--physdev-is-bridged`.
    pub is_bridged: Option<bool>,
}

impl Physdev {
    /// Whether a packet fits; `ports`: the names of the ports that it came in by and leaves by, none of the latter where it is not bridged. `None`: no
    /// bridge has shown it to the rules.
    //= linux v6.12 net/netfilter/xt_physdev.c physdev_mt
    pub fn fits(&self, ports: Option<(&str, Option<&str>)>) -> bool {
        let Some((input, output)) = ports else {
            let named = [&self.input, &self.output].map(|n| n.as_ref().map(|(_, invert)| *invert));
            return named
                .into_iter()
                .chain([self.is_in, self.is_out, self.is_bridged])
                .flatten()
                .all(|invert| invert);
        };
        let is = |wanted: &str, name: &str| match wanted.strip_suffix('+') {
            Some(start) => name.starts_with(start),
            None => name == wanted,
        };
        self.is_bridged.is_none_or(|invert| output.is_some() != invert)
            && self.is_in.is_none_or(|invert| !invert)
            && self.is_out.is_none_or(|invert| output.is_some() != invert)
            && self.input.as_ref().is_none_or(|(name, invert)| is(name, input) != *invert)
            && self
                .output
                .as_ref()
                .is_none_or(|(name, invert)| output.is_some_and(|o| is(name, o) != *invert))
    }
}
