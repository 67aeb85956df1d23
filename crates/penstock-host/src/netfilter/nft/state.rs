//! What counts and limits: statements of a rule, of an element, and objects of a table.
//!
//! Follows: linux v6.12 `nft_counter.c`, `nft_limit.c` `nft_limit_eval`, `nft_quota.c` `nft_quota_do_eval`, `nft_connlimit.c`
//! `nft_connlimit_do_eval`, `nf_tables.h` `nft_set_elem_update_expr`.

use super::super::eval::{Way, bucket};
use super::super::state::{Memory, More};
use penstock_lang::nft::{Kind, Limit, Object, Quota, Statement};
use penstock_packet::Skb;

/// A statement with what it remembers.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct State {
    pub(super) statement: Statement,
    pub(super) memory: Memory,
}

/// A table's object.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ObjectState {
    pub(super) name: String,
    pub(super) handle: u64,
    pub(super) comment: Option<String>,
    pub(super) kind: Kind,
    pub(super) state: State,
}

impl ObjectState {
    pub(super) fn new(name: &str, handle: u64, object: &Object, comment: Option<String>) -> ObjectState {
        let statement = match object {
            Object::Counter(packets, bytes) => Statement::Counter(*packets, *bytes),
            Object::Quota(q) => Statement::Quota(q.clone()),
            Object::Limit(l) => Statement::Limit(l.clone()),
        };
        let state = State { statement, memory: Memory::default() };
        ObjectState { name: name.to_owned(), handle, comment, kind: object.kind(), state }
    }
    /// As it is shown.
    pub(super) fn object(&self) -> Object {
        match &self.state.statement {
            Statement::Quota(q) => Object::Quota(q.clone()),
            Statement::Limit(l) => Object::Limit(l.clone()),
            Statement::Counter(packets, bytes) => Object::Counter(*packets, *bytes),
            _ => Object::Counter(0, 0),
        }
    }
    /// What it has counted is forgotten.
    pub(super) fn reset(&mut self) {
        match &mut self.state.statement {
            Statement::Counter(packets, bytes) => (*packets, *bytes) = (0, 0),
            Statement::Quota(q) => q.used = 0,
            _ => {}
        }
    }
}

/// Whether a statement that counts or limits lets the rule go on.
pub(super) fn passes(s: &mut Statement, memory: &mut Memory, skb: &Skb, way: &mut Way<'_>) -> bool {
    match s {
        Statement::Counter(packets, bytes) => {
            *packets += 1;
            *bytes += u64::from(skb.network_len());
            true
        }
        Statement::Limit(l) => within(l, memory, skb, way),
        Statement::Quota(q) => within_quota(q, skb),
        Statement::Count { over, count } => {
            if !matches!(memory.more, More::Connections(_)) {
                memory.more = More::Connections(Box::default());
            }
            let More::Connections(list) = &mut memory.more else { return false };
            match list.count_here(skb, way) {
                Some(connections) => (connections > *count) == *over,
                None => {
                    way.hotdrop = true;
                    false
                }
            }
        }
        _ => true,
    }
}

/// Those of an element one after the other: the first that does not let the rule go on ends it.
pub(super) fn evaluate(all: &mut [State], skb: &Skb, way: &mut Way<'_>) -> bool {
    all.iter_mut().all(|s| passes(&mut s.statement, &mut s.memory, skb, way))
}

impl State {
    /// Whether its connections are all gone (`nft_connlimit_gc`).
    pub(super) fn forgets(&mut self, way: &mut Way<'_>) -> bool {
        match &mut self.memory.more {
            More::Connections(list) => list.is_over(way),
            _ => false,
        }
    }
}

fn within_quota(q: &mut Quota, skb: &Skb) -> bool {
    q.used = q.used.saturating_add(skb.network_len().into());
    (q.used > q.bytes) == q.over
}

fn within(l: &Limit, mem: &mut Memory, skb: &Skb, way: &Way<'_>) -> bool {
    //= linux v6.12 net/netfilter/nft_limit.c nft_limit_init, nft_limit_eval
    let ns = i128::from(l.per_s) * 1_000_000_000;
    let rate = i128::from(l.rate.max(1));
    let (cost, cap) = match l.bytes {
        false => {
            let cost = ns / rate;
            (cost, cost * if l.burst == 0 { 5 } else { i128::from(l.burst) })
        }
        true => (i128::from(skb.network_len()) * ns / rate, ns * (rate + i128::from(l.burst)) / rate),
    };
    let conform = bucket(mem, cost as i64, cap.min(i64::MAX.into()) as i64, way.now);
    conform != l.over
}
