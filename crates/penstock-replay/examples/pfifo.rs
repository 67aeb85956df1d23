//! Ten packets at once through a queue of five before a line of 1 Mbit/s: which leave, and when.

use serde_json::{Value, json};

fn main() -> Result<(), String> {
    let spec = json!({
        "release": "link",
        "rate": "1mbit",
        "setup": ["qdisc add dev $DEV $PARENT handle 1: pfifo limit 5"],
        "packets": [{"t_us": 0, "len": 1000, "repeat": 10}],
    });
    let answer = penstock_replay::run(&spec).map_err(|fault| fault.to_string())?;
    let rows = |of: &str| answer[of].as_array().cloned().unwrap_or_default();
    for left in rows("departures") {
        println!("packet {} left at {} ns", left["i"], left["t_ns"]);
    }
    let dropped: Vec<Value> = rows("drops").iter().map(|drop| drop["i"].clone()).collect();
    println!("dropped: {dropped:?}");
    assert_eq!(rows("departures").len() + dropped.len(), 10);
    assert!(!dropped.is_empty() && dropped.len() <= 5);
    Ok(())
}
