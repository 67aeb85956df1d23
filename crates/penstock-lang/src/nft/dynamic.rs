//! What counts and limits, alone, by a name or for each element of a set; and sets that packets add to.

use super::Pos;
use super::data::{Expr, Limit, Raw, Statement};

/// `quota`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quota {
    /// `over`: true once the bytes are used up.
    pub over: bool,
    /// Bytes.
    pub bytes: u64,
    /// Bytes used; at the start what stands behind `used`, default 0.
    pub used: u64,
}

/// What an object of a table is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Object {
    /// `counter`: packets and bytes.
    Counter(u64, u64),
    /// `quota`.
    Quota(Quota),
    /// `limit`.
    Limit(Limit),
}

/// Kinds of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `counter`.
    Counter,
    /// `quota`.
    Quota,
    /// `limit`.
    Limit,
}

impl Kind {
    /// As it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Quota => "quota",
            Kind::Limit => "limit",
        }
    }
    /// The kind of this name, of one or (with an `s`) of many.
    pub(super) fn named(word: &str) -> Option<Kind> {
        [Kind::Counter, Kind::Quota, Kind::Limit].into_iter().find(|k| k.word() == word)
    }
}

impl Object {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Object::Counter(..) => Kind::Counter,
            Object::Quota(_) => Kind::Quota,
            Object::Limit(_) => Kind::Limit,
        }
    }
}

/// What a packet does to a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// `add`: what is there keeps its time.
    Add,
    /// `update`: its time begins anew.
    Update,
    /// `delete`.
    Delete,
}

impl Op {
    /// As it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Op::Add => "add",
            Op::Update => "update",
            Op::Delete => "delete",
        }
    }
}

/// `add | update | delete @SET { KEY … }`, `meter NAME { KEY … }`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dynset {
    /// What is done.
    pub op: Op,
    /// The set, map or meter.
    pub set: String,
    /// Where its name stands.
    pub pos: Pos,
    /// Whether it is a meter, which the rule brings with it; its greatest number of elements.
    pub meter: Option<u32>,
    /// The element.
    pub key: Expr,
    /// What a map gives for it, once the map's type is known.
    pub data: Option<Expr>,
    /// The same as it was written.
    pub given: Option<Raw>,
    /// `timeout`, ms.
    pub timeout: Option<u64>,
    /// What each element counts or limits.
    pub states: Vec<Statement>,
}

/// What an element has besides its key and what a map gives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct More {
    /// `timeout`, ms.
    pub timeout: Option<u64>,
    /// `expires`, ms.
    pub expires: Option<u64>,
    /// `comment`.
    pub comment: Option<String>,
    /// What it counts or limits.
    pub states: Vec<Statement>,
}
