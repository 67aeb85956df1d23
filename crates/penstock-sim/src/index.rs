//! Indices in tables.

/// The interface index of `lo`.
pub(crate) const LOOPBACK: u32 = 1;

/// No such thing, in a table of indices.
pub(crate) const NONE: u32 = u32::MAX;

/// Which numbers a table gives to what is added: all, or where `of` tables share the numbers every `of`-th.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    pub(crate) at: usize,
    pub(crate) of: usize,
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers { at: 0, of: 1 }
    }
}

impl Numbers {
    /// Fills a table up to the next number that is its own; answers that.
    pub(crate) fn next<T>(self, table: &mut Vec<T>, blank: impl Fn() -> T) -> u32 {
        while table.len() % self.of != self.at {
            table.push(blank());
        }
        table.len() as u32
    }
}
