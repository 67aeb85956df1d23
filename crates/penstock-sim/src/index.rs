//! Indices in tables.

/// The interface index of `lo`.
pub(crate) const LOOPBACK: u32 = 1;

/// No such thing, in a table of indices.
pub(crate) const NONE: u32 = u32::MAX;
