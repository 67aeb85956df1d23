//! What `tc -s` prints on a real machine, as numbers. (To run experiments there takes root: `penstock run --on kernel`.)

use penstock_kernel::stats;

const PRINTED: &str = "qdisc tbf 8001: dev eth0 root refcnt 2 rate 5Mbit burst 16Kb lat 50ms
 Sent 1250000 bytes 1000 pkt (dropped 12, overlimits 340 requeues 0)
 backlog 3000b 2p requeues 0
";

fn main() {
    for object in stats::parse(PRINTED) {
        println!(
            "{} {} on {}: {} of {} packets dropped",
            object.kind, object.id, object.dev, object.drops, object.packets
        );
        assert_eq!(
            (object.kind.as_str(), object.drops, object.packets, object.backlog),
            ("tbf", 12, 1000, 3000)
        );
    }
}
