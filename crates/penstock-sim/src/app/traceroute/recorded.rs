//! What traceroute printed in random networks on Linux 6.12 (`vectors/traceroute`), and what is printed here in the same.

use crate::recorded::{check, differences};

#[test]
fn traceroute_prints_what_was_recorded() {
    check("traceroute.jsonl", 60);
}

/// A run that prints something else is seen.
#[test]
fn a_difference_is_seen() {
    let same = differences("1  10.0.0.1  1.000 ms *\n", "1  10.0.0.1  1.001 ms *\n");
    assert_eq!(same, None);
    for other in ["1  10.0.0.2  1.000 ms *\n", "1  10.0.0.1  1.004 ms *\n", "1  10.0.0.1  1.000 ms\n", ""] {
        assert!(differences("1  10.0.0.1  1.000 ms *\n", other).is_some(), "{other}");
    }
}
