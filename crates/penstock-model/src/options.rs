//! Option tables: what travels between a command and a queueing discipline.
//!
//! The same role as rtnetlink's attributes between tc and the kernel: `lang` turns words into [`Options`] (tc's
//! half of the checks), `sched` reads them and refuses what the kernel would refuse, and dumps the same names back
//! for `lang` to print. The names are tc's words (`rate`, `ceil`, `cburst`, `limit`, `quantum`); where the wire
//! form differs from the word (a burst travels as ticks) the doc of the kind says so.

use std::fmt;

/// One value of an option.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Present without a value: `ecn`, `bands 3`'s absence of one, …
    Flag,
    /// A number of up to 32 bits: packets, bytes, ticks, ids.
    U32(u32),
    /// A number of up to 64 bits: rates in bytes per second, times in ns.
    U64(u64),
    /// A signed number.
    I64(i64),
    /// Text.
    Str(String),
    /// Small numbers in order: a priomap, an address.
    Bytes(Vec<u8>),
    /// Options within an option.
    Nested(Options),
    /// A list of options: the keys of a u32 selector, the actions of a filter.
    List(Vec<Options>),
}

/// Named values in the order they were given; a name stands at most once.
#[derive(Clone, PartialEq, Default)]
pub struct Options(Vec<(&'static str, Value)>);

impl Options {
    /// No options.
    pub const fn new() -> Options {
        Options(Vec::new())
    }
    /// Sets `name`, replacing an earlier value in place.
    pub fn set(&mut self, name: &'static str, value: Value) -> &mut Self {
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some((_, v)) => *v = value,
            None => self.0.push((name, value)),
        }
        self
    }
    /// The same, for building in one expression.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.set(name, value.into());
        self
    }
    /// Takes `name` out.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let i = self.0.iter().position(|(n, _)| *n == name)?;
        Some(self.0.remove(i).1)
    }
    /// The value of `name`.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }
    /// Whether `name` was given.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
    /// `name` as a 32-bit number.
    pub fn u32(&self, name: &str) -> Option<u32> {
        match self.value(name)? {
            Value::U32(v) => Some(*v),
            Value::U64(v) => u32::try_from(*v).ok(),
            _ => None,
        }
    }
    /// `name` as a 64-bit number.
    pub fn u64(&self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Value::U32(v) => Some(u64::from(*v)),
            Value::U64(v) => Some(*v),
            _ => None,
        }
    }
    /// `name` as a signed number.
    pub fn i64(&self, name: &str) -> Option<i64> {
        match self.value(name)? {
            Value::U32(v) => Some(i64::from(*v)),
            Value::I64(v) => Some(*v),
            Value::U64(v) => i64::try_from(*v).ok(),
            _ => None,
        }
    }
    /// `name` as text.
    pub fn str(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Str(v) => Some(v),
            _ => None,
        }
    }
    /// `name` as bytes.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        match self.value(name)? {
            Value::Bytes(v) => Some(v),
            _ => None,
        }
    }
    /// The options within `name`.
    pub fn nested(&self, name: &str) -> Option<&Options> {
        match self.value(name)? {
            Value::Nested(v) => Some(v),
            _ => None,
        }
    }
    /// The list under `name`; empty when absent.
    pub fn list(&self, name: &str) -> &[Options] {
        match self.value(name) {
            Some(Value::List(v)) => v,
            _ => &[],
        }
    }
    /// All names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(n, v)| (*n, v))
    }
    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(n, v)| (n, v))).finish()
    }
}

macro_rules! from {
    ($($ty:ty => $variant:ident),*) => {
        $(impl From<$ty> for Value {
            fn from(v: $ty) -> Value { Value::$variant(v.into()) }
        })*
    };
}
from!(u8 => U32, u16 => U32, u32 => U32, u64 => U64, i32 => I64, i64 => I64, &str => Str, String => Str,
      Vec<u8> => Bytes, Options => Nested, Vec<Options> => List);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_one_value_a_name() {
        let mut o = Options::new().with("rate", 125_000u64).with("limit", 5u32);
        o.set("rate", Value::U64(250_000));
        assert_eq!(o.iter().map(|(n, _)| n).collect::<Vec<_>>(), ["rate", "limit"]);
        assert_eq!((o.u64("rate"), o.u32("limit"), o.u32("burst")), (Some(250_000), Some(5), None));
        assert_eq!(o.u32("rate"), Some(250_000));
        assert_eq!(o.remove("rate"), Some(Value::U64(250_000)));
        assert!(!o.has("rate"));
    }
}
