//! Commands, chains, sets and rules as plain data.

use super::Pos;
use super::dynamic::{Dynset, Kind, More, Object, Quota};
use super::value::{bounds, turned};
use std::sync::OnceLock;

/// A family of tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// `ip`.
    Ip,
    /// `ip6`.
    Ip6,
    /// `inet`: both.
    Inet,
    /// `arp`.
    Arp,
    /// `bridge`.
    Bridge,
    /// `netdev`: at a device.
    Netdev,
}

impl Family {
    /// All.
    pub const ALL: [Family; 6] =
        [Family::Ip, Family::Ip6, Family::Inet, Family::Arp, Family::Bridge, Family::Netdev];
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Ip => "ip",
            Family::Ip6 => "ip6",
            Family::Inet => "inet",
            Family::Arp => "arp",
            Family::Bridge => "bridge",
            Family::Netdev => "netdev",
        }
    }
}

/// A base chain: where it hangs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Base {
    /// `filter`, `nat` or `route`.
    pub ty: String,
    /// `input`, …
    pub hook: String,
    /// Devices of `netdev`.
    pub devices: Vec<String>,
    /// Priority.
    pub priority: i32,
    /// Whether the policy is drop.
    pub drop: bool,
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// `mark`.
    Mark,
    /// `classid`: a class of tc.
    Classid,
    /// `ifname`.
    Ifname,
    /// `inet_proto`.
    Protocol,
    /// `inet_service`.
    Service,
    /// `ipv4_addr`.
    Ipv4,
    /// `ipv6_addr`.
    Ipv6,
    /// `dscp`.
    Dscp,
    /// `ecn`.
    Ecn,
    /// `ct_state`.
    CtState,
    /// `ct_status`.
    CtStatus,
    /// `fib_addrtype`.
    FibType,
    /// `boolean`: `exists` or `missing`.
    Boolean,
    /// `ct_dir`.
    CtDir,
    /// `ct_id`.
    CtId,
    /// `icmp_type`.
    Icmp,
    /// `icmpv6_type`.
    Icmp6,
    /// `icmp_code`.
    IcmpCode,
    /// `icmpv6_code`.
    Icmp6Code,
    /// `tcp_flag`.
    TcpFlag,
    /// `uid`.
    Uid,
    /// `gid`.
    Gid,
    /// `nf_proto`.
    NfProto,
    /// `ether_type`.
    EtherType,
    /// `ether_addr`.
    EtherAddr,
    /// `pkt_type`.
    PktType,
    /// `verdict`.
    Verdict,
    /// A number of so many bits.
    Integer(u8),
}

/// What is looked at or changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expr {
    /// `meta KEY`.
    Meta(&'static str),
    /// `ct [original|reply] KEY`.
    Ct(&'static str, Option<bool>),
    /// A header's field: header, field.
    Field(&'static str, &'static str),
    /// `numgen inc|random mod N [offset N]`.
    Numgen {
        /// `random`.
        random: bool,
        /// How many numbers.
        modulus: u32,
        /// The first.
        offset: u32,
    },
    /// `jhash KEY mod N [seed N] [offset N]`; without a key `symhash`, of addresses and ports, the same both ways.
    Hash {
        /// What is hashed.
        key: Option<Box<Expr>>,
        /// How many numbers.
        modulus: u32,
        /// `seed`; without one the kernel draws it when the rule is made.
        seed: Option<u32>,
        /// The first number.
        offset: u32,
    },
    /// `fib saddr . iif oif`: what the routes say of an address.
    Fib {
        /// What it goes by: bits of [`fib`].
        by: u8,
        /// What it answers.
        result: FibResult,
    },
    /// A number, of the type beside it.
    Value(u128, Type),
    /// A name of devices; `ppp*` for all that begin so.
    Name(String),
    /// First and last.
    Range(u128, u128, Type),
    /// An address and the length of its prefix.
    Prefix(u128, u8, Type),
    /// Flags, any of which: the bits, and the mask behind a slash.
    Flags(u128, Option<u128>, Type),
    /// `{ … }`.
    Set(Set),
    /// `@NAME`.
    Named(String, Pos),
    /// `& | ^ << >>`.
    Op(Op, Box<Expr>, Box<Expr>),
    /// `KEY map { … }`.
    Map(Box<Expr>, Box<Expr>),
    /// `A . B`.
    Concat(Vec<Expr>),
}

/// What `fib` answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FibResult {
    /// `type`: the address's kind.
    Type,
    /// `oif`: the route's device.
    Oif,
    /// `oifname`.
    Oifname,
    /// `oif exists`, `oif missing`: whether there is such a route.
    Present,
}

/// What `fib` goes by, as bits.
pub mod fib {
    /// `saddr`.
    pub const SADDR: u8 = 1;
    /// `daddr`.
    pub const DADDR: u8 = 2;
    /// `mark`.
    pub const MARK: u8 = 4;
    /// `iif`.
    pub const IIF: u8 = 8;
    /// `oif`.
    pub const OIF: u8 = 16;
    /// Their words, in the order they are written back.
    pub const WORDS: [(&str, u8); 5] =
        [("saddr", SADDR), ("daddr", DADDR), ("mark", MARK), ("iif", IIF), ("oif", OIF)];
}

/// Arithmetic of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// `&`.
    And,
    /// `|`.
    Or,
    /// `^`.
    Xor,
    /// `<<`.
    Left,
    /// `>>`.
    Right,
}

impl Op {
    /// As it is written.
    pub const fn sign(self) -> &'static str {
        match self {
            Op::And => "&",
            Op::Or => "|",
            Op::Xor => "^",
            Op::Left => "<<",
            Op::Right => ">>",
        }
    }
}

/// Elements, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Set {
    /// Types of the key, one or several joined.
    pub key: Vec<Type>,
    /// Type of what a map gives.
    pub data: Option<Type>,
    /// `flags interval`, or ranges among anonymous elements.
    pub interval: bool,
    /// `flags dynamic`: packets add to it.
    pub dynamic: bool,
    /// `flags timeout`, or a `timeout`: elements may go by themselves.
    pub timeouts: bool,
    /// `flags constant`: no packet changes it.
    pub constant: bool,
    /// `auto-merge`.
    pub auto_merge: bool,
    /// `policy memory`.
    pub memory: bool,
    /// Whether it is a rule's `meter`.
    pub meter: bool,
    /// `size`: most elements. Default 65,535 where packets add to it, else no bound.
    pub size: Option<u32>,
    /// `timeout` of elements that have none of their own, ms.
    pub timeout: Option<u64>,
    /// `gc-interval`, ms: how often elements whose time is over make room. Default 1000.
    pub gc_interval: Option<u64>,
    /// What each element counts or limits.
    pub states: Vec<Statement>,
    /// `typeof`: what the key is, and what a map gives.
    pub type_of: Option<Box<(Expr, Option<Expr>)>>,
    /// The elements.
    pub elements: Vec<Element>,
    /// How they are found.
    pub(super) index: Index,
}

/// How a set's elements are found, made when the first is looked for. It means nothing to who compares or copies sets.
#[derive(Default, Debug)]
pub(super) struct Index(OnceLock<How>);

/// Ways to find an element.
#[derive(Debug)]
enum How {
    /// Keys are numbers and ranges in order: up to each, the highest that any reaches.
    Reach(Vec<u128>),
    /// Keys are joined numbers in order.
    Joined,
    /// One after the other.
    Walk,
}

impl Clone for Index {
    fn clone(&self) -> Index {
        Index::default()
    }
}
impl PartialEq for Index {
    fn eq(&self, _: &Index) -> bool {
        true
    }
}
impl Eq for Index {}

impl Verdict {
    fn rename_chain(&mut self, old: &str, new: &str) {
        if let Verdict::Jump(name) | Verdict::Goto(name) = self
            && name == old
        {
            new.clone_into(name);
        }
    }
}

impl Rule {
    /// A chain that it jumps to has another name.
    pub fn rename_chain(&mut self, old: &str, new: &str) {
        for statement in &mut self.statements {
            match statement {
                Statement::Verdict(verdict) => verdict.rename_chain(old, new),
                Statement::Vmap(_, Expr::Set(set)) => set.rename_chain(old, new),
                _ => {}
            }
        }
    }
}

impl Set {
    /// A chain that its verdicts jump to has another name.
    pub fn rename_chain(&mut self, old: &str, new: &str) {
        if self.data != Some(Type::Verdict) {
            return;
        }
        for element in self.elements_mut() {
            if let Some(Data::Verdict(verdict)) = &mut element.data {
                verdict.rename_chain(old, new);
            }
        }
    }
    /// The elements, to be changed; they are put in order after it ([`super::value::ordered`]).
    pub fn elements_mut(&mut self) -> &mut Vec<Element> {
        self.index = Index::default();
        &mut self.elements
    }
    fn how(&self) -> &How {
        self.index.0.get_or_init(|| {
            let number = |e: &Expr| matches!(e, Expr::Value(..) | Expr::Range(..) | Expr::Prefix(..));
            let joined = |e: &Expr| match e {
                Expr::Concat(parts) => parts.iter().all(|p| matches!(p, Expr::Value(..))),
                _ => false,
            };
            if self.elements.iter().all(|e| number(&e.key)) {
                let mut most = 0;
                let further = |e: &Element| {
                    most = bounds(&e.key).1.max(most);
                    most
                };
                let reach = self.elements.iter().map(further).collect();
                let firsts = self.elements.iter().map(|e| bounds(&e.key).0);
                return if firsts.is_sorted() { How::Reach(reach) } else { How::Walk };
            }
            let sorted = self.elements.is_sorted_by_key(|e| super::value::order(&e.key));
            if sorted && self.elements.iter().all(|e| joined(&e.key)) { How::Joined } else { How::Walk }
        })
    }
    /// The place of the first element whose key has these numbers, one for each part of the key. `None`: they must be asked one after the
    /// other, for keys are names, flags, or ranges joined with others.
    pub fn find(&self, numbers: &[u128]) -> Option<Option<usize>> {
        match (self.how(), numbers) {
            (How::Reach(reach), [n]) => {
                let at = reach.partition_point(|last| last < n);
                Some(self.elements.get(at).filter(|e| bounds(&e.key).0 <= *n).map(|_| at))
            }
            (How::Joined, [_, _, ..]) => {
                let parts = |e: &Element| match &e.key {
                    Expr::Concat(parts) => {
                        let each = parts.iter().zip(numbers).rev().map(|(p, n)| match p {
                            Expr::Value(v, ty) => turned(*v, *ty).cmp(&turned(*n, *ty)),
                            _ => std::cmp::Ordering::Less,
                        });
                        each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
                    }
                    _ => std::cmp::Ordering::Less,
                };
                let at = self.elements.partition_point(|e| parts(e).is_lt());
                Some(self.elements.get(at).filter(|e| parts(e).is_eq()).map(|_| at))
            }
            _ => None,
        }
    }
}

/// One element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// The key.
    pub key: Expr,
    /// What a map gives for it.
    pub data: Option<Data>,
    /// Its time, comment and what it counts, where it has any.
    pub more: Option<Box<More>>,
}

impl Element {
    /// One without a time, a comment or a state.
    pub const fn new(key: Expr, data: Option<Data>) -> Element {
        Element { key, data, more: None }
    }
}

/// What a map gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// A value.
    Value(Expr),
    /// A verdict.
    Verdict(Verdict),
}

/// What becomes of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// `accept`.
    Accept,
    /// `drop`.
    Drop,
    /// `continue`.
    Continue,
    /// `return`.
    Return,
    /// `jump`.
    Jump(String),
    /// `goto`.
    Goto(String),
}

/// How two sides are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compare {
    /// Nothing written: equal, or any of the flags.
    Is,
    /// `==` written before flags.
    Equal,
    /// `!` before flags: none of them.
    Without,
    /// `!=`.
    Not,
    /// `<`.
    Less,
    /// `>`.
    Greater,
    /// `<=`.
    AtMost,
    /// `>=`.
    AtLeast,
}

/// A statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// Goes on only where it holds.
    Match(Expr, Compare, Expr),
    /// `… set …`.
    Set(Expr, Expr),
    /// `counter`: packets and bytes it begins with.
    Counter(u64, u64),
    /// `limit rate`.
    Limit(Limit),
    /// `quota`.
    Quota(Quota),
    /// `ct count [over] N`: how many connections come here.
    Count {
        /// `over`: true beyond so many.
        over: bool,
        /// So many.
        count: u32,
    },
    /// `counter name`, `quota name`, `limit name`.
    Object(Kind, String, Pos),
    /// A set gets the packet's element, or loses it.
    Dynset(Box<Dynset>),
    /// A verdict.
    Verdict(Verdict),
    /// `KEY vmap …`.
    Vmap(Expr, Expr),
    /// `reject`, with what is behind it as it is written back; the ICMP code, or none for a TCP reset.
    Reject(String, Option<u8>),
    /// `notrack`.
    Notrack,
    /// `log`, as it is written back.
    Log(String),
    /// `masquerade`, `snat`, `dnat`, `redirect`: kept and shown.
    Nat(String),
    /// `tcp option maxseg size set …`, as it is written back.
    Other(String),
}

/// `limit rate`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// `over`: true beyond the rate.
    pub over: bool,
    /// Packets, or bytes.
    pub rate: u64,
    /// Seconds: 1, 60, 3600, 86,400, 604,800.
    pub per_s: u32,
    /// Whether bytes are counted.
    pub bytes: bool,
    /// Burst. Default 5 packets, or no bytes.
    pub burst: u64,
}

/// A rule's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rule {
    /// What it does.
    pub statements: Vec<Statement>,
    /// `comment`.
    pub comment: Option<String>,
}

/// An element whose type is not known yet, or a value: as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Raw {
    /// A word or number, and whether it was quoted.
    Word(String, Pos, bool),
    /// `first-last`.
    Range(Box<Raw>, Box<Raw>),
    /// `address/length`.
    Prefix(Box<Raw>, u64, Pos),
    /// `a,b`.
    List(Vec<Raw>),
    /// `{ … }`.
    Set(Vec<RawElement>, Pos),
    /// `@name`.
    Named(String, Pos),
    /// `a . b`.
    Concat(Vec<Raw>),
    /// A whole expression, as in `ct mark set meta mark`.
    Expr(Expr, Pos),
    /// Arithmetic.
    Op(Op, Box<Raw>, Box<Raw>),
    /// `key map …`.
    Map(Box<Raw>, Box<Raw>),
}

/// An element as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawElement {
    /// The key.
    pub key: Raw,
    /// What a map gives.
    pub data: Option<RawData>,
    /// Its time, comment and what it counts, where it has any.
    pub more: Option<Box<More>>,
}

/// What a map gives, as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RawData {
    /// A value.
    Value(Raw),
    /// A verdict.
    Verdict(Verdict),
}

/// A thing's family, table and own name, with their places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// Family.
    pub family: Family,
    /// Table.
    pub table: String,
    /// Where the table's name stands.
    pub table_pos: Pos,
    /// The chain or set; empty for the table itself.
    pub name: String,
    /// Where it stands.
    pub pos: Pos,
}

/// Where a rule goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// To the end, or with `insert` to the beginning.
    Edge,
    /// Beside the rule with this handle.
    Handle(u64, Pos),
    /// Beside the rule with this number, from 0.
    Index(u64, Pos),
}

/// What is listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// `ruleset`.
    Ruleset,
    /// `tables`.
    Tables,
    /// `chains`.
    Chains,
    /// `sets`.
    Sets,
    /// `maps`.
    Maps,
    /// `meters`.
    Meters,
    /// `counters`, `quotas`, `limits`.
    Objects(Kind),
    /// `hooks` and other lists that are empty here.
    Nothing,
}

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// `add table`, `create table`; with its comment.
    AddTable(Name, bool, Option<String>),
    /// `delete table`.
    DeleteTable(Name),
    /// `flush table`.
    FlushTable(Name),
    /// `list table`.
    ListTable(Name),
    /// `add chain`, `create chain`.
    AddChain(Name, bool, Option<Base>, Option<String>),
    /// `delete chain`.
    DeleteChain(Name),
    /// `flush chain`.
    FlushChain(Name),
    /// `rename chain`.
    RenameChain(Name, String),
    /// `list chain`.
    ListChain(Name),
    /// `add rule`, `insert rule` (true): at a place.
    AddRule(Name, bool, Place, Rule, Pos),
    /// `replace rule … handle`.
    ReplaceRule(Name, u64, Pos, Rule),
    /// `delete rule … handle`.
    DeleteRule(Name, u64, Pos),
    /// `add set`, `add map`, `create …`.
    AddSet(Name, bool, Set, Vec<RawElement>, Option<String>),
    /// `delete set`, `delete map`.
    DeleteSet(Name),
    /// `flush set`, `flush map`.
    FlushSet(Name),
    /// `list set`, `list map`.
    ListSet(Name),
    /// `add element`, `create element` (true).
    AddElement(Name, bool, Vec<RawElement>, Pos),
    /// `get element`, and where all of it stands.
    GetElement(Name, Vec<RawElement>, Pos),
    /// `delete element`.
    DeleteElement(Name, Vec<RawElement>, Pos),
    /// `list meter`.
    ListMeter(Name),
    /// `add counter`, `add quota`, `add limit`, `create …` (true); with its comment.
    AddObject(Name, bool, Object, Option<String>),
    /// `delete counter`, …
    DeleteObject(Name, Kind),
    /// `list counter`, …; `reset counter`, `reset quota` (true): what it has counted is listed and forgotten.
    ListObject(Name, Kind, bool),
    /// `reset counters`, `reset quotas`: of one family or all, of one table or all.
    ResetObjects(Kind, Option<Family>, Option<Name>),
    /// `flush ruleset`, of one family or all.
    FlushRuleset(Option<Family>),
    /// `list …`, of one family or all, of one table or all.
    List(What, Option<Family>, Option<Name>),
}
