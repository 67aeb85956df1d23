//! Algorithms that several queueing disciplines embed. They see lengths and dice, never the tree.

pub mod cobalt;
pub mod codel;
pub mod ecn;
pub mod floyd;
pub mod pie;
pub mod red;
