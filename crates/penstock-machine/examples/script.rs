//! A shaping script on a machine made for it: what its commands say, and its exit status.

use penstock_machine::script::{Kept, Script, on_a_fresh_machine};
use penstock_model::Kernel;

const SHAPER: &str = "tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit ceil 10mbit
tc class show dev eth0
";

fn main() -> Result<(), String> {
    let script = Script { text: SHAPER.to_owned(), name: "shaper.sh".to_owned(), ..Script::default() };
    let mut kept = Kept::default();
    let (machine, _, status) = on_a_fresh_machine(&script, Kernel::V6_12, &[], &mut kept)?;
    println!("{}{}status {status} on {}", kept.stdout, kept.stderr, machine.name());
    assert_eq!(status, 0);
    assert!(kept.stdout.contains("class htb 1:10 root prio 0 rate 5Mbit ceil 10Mbit"));
    Ok(())
}
