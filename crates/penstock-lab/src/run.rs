//! From an experiment to a record.

/// Names of the congestion controls there are.
pub fn congestion_controls() -> Vec<&'static str> {
    vec!["reno", "newreno", "cubic"]
}
