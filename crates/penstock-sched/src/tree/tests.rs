//! Trees as tc asks for them.

use super::*;
use crate::testing::{Bench, device, packet, qdisc};

fn shown(tree: &Tree) -> Vec<String> {
    let line = |d: QdiscDump| format!("{} {} {} {}", d.kind, d.handle, d.parent, d.refcnt);
    tree.dump_qdiscs(Time::ZERO).into_iter().map(line).collect()
}

#[test]
fn a_fresh_device_has_pfifo_fast_and_gets_it_back() {
    for kernel in Kernel::ALL {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(kernel));
        assert_eq!(shown(&tree), ["pfifo_fast none root 2"]);
        tree.qdisc(&qdisc("add root pfifo limit 7"), &mut bench.cx(0)).unwrap();
        assert_eq!(shown(&tree), ["pfifo 8001: root 2"]);
        tree.enqueue(packet(0, 100), &mut bench.cx(0));
        tree.qdisc(&qdisc("del root"), &mut bench.cx(0)).unwrap();
        assert_eq!(shown(&tree), ["pfifo_fast none root 2"]);
        assert_eq!(bench.dropped(), [(0, crate::DropReason::Purged)]);
        assert_eq!(tree.dump_qdiscs(Time::ZERO)[0].stats, Default::default());
    }
}

#[test]
fn refusals_are_the_kernels() {
    let check = |script: &[&str], errno: i32, sentence: &str| {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = Tree::new(device(kernel));
            let (last, before) = script.split_last().unwrap();
            for line in before {
                tree.qdisc(&qdisc(line), &mut bench.cx(0)).unwrap();
            }
            let sentence = match sentence {
                "Invalid qdisc name" if kernel >= Kernel::V7_2 => {
                    "Invalid qdisc name: must match existing qdisc"
                }
                other => other,
            };
            let want = device(kernel).refusal(errno, sentence);
            assert_eq!(tree.qdisc(&qdisc(last), &mut bench.cx(0)), Err(want), "{kernel} {last}");
        }
    };
    check(&["del root"], 2, "Cannot delete qdisc with handle of zero");
    check(&["add root nonsense"], 2, "Specified qdisc kind is unknown");
    check(&["add root pfifo", "add root pfifo"], 17, "Exclusivity flag on, cannot modify");
    check(&["add root handle 1: pfifo", "add root handle 2: pfifo"], 17, "NLM_F_REPLACE needed to override");
    check(&["change root pfifo limit 3"], 2, "Qdisc not found. To create specify NLM_F_CREATE flag");
    check(&["add parent 5:1 pfifo"], 2, "Failed to find specified qdisc");
    check(&["add root handle 1:1 pfifo"], 22, "Invalid minor handle");
    check(&["add root handle 1: pfifo", "del root handle 2:"], 22, "Invalid handle");
    check(&["add root handle 1: pfifo", "del root bfifo"], 22, "Invalid qdisc name");
    check(&["add root handle 1: pfifo", "add parent 1:1 pfifo"], 95, "Parent qdisc is not classful");
    check(
        &["add root pfifo_fast", "replace root pfifo_fast limit 3"],
        22,
        "Change operation not supported by specified qdisc",
    );
}

#[test]
fn a_change_that_makes_the_inner_qdisc_anew_frees_its_handle() {
    let mut bench = Bench::new();
    let mut tree = Tree::new(device(Kernel::V6_12));
    let inner = "add parent 1:1 handle 11: pfifo limit 5";
    for line in ["add root handle 1: sfb limit 60", inner, "change root handle 1: sfb limit 50", inner] {
        tree.qdisc(&qdisc(line), &mut bench.cx(0)).unwrap();
    }
    assert_eq!(shown(&tree), ["sfb 1: root 2", "pfifo 11: 1:1 1"]);
}

/// What is made by default in a class goes by the length that the device has then.
#[test]
fn a_class_made_later_goes_by_the_device_of_then() {
    let mut bench = Bench::new();
    let mut tree = Tree::without_queue(device(Kernel::V7_2));
    for line in ["add root handle 1: ets bands 1 strict 1", "add parent 1:1 handle 2: pfifo limit 5"] {
        tree.qdisc(&qdisc(line), &mut bench.cx(0)).unwrap();
    }
    let limit = |tree: &Tree| tree.dump_qdiscs(Time::ZERO).last().unwrap().options.u32("limit");
    tree.set_device(Device { tx_queue_len: 3, ..*tree.device() }, &mut bench.cx(0));
    tree.qdisc(&qdisc("replace parent 1:1 handle 3: pfifo"), &mut bench.cx(0)).unwrap();
    assert_eq!(limit(&tree), Some(3));
}

#[test]
fn a_device_that_needs_no_queue_gets_a_length_with_a_qdisc() {
    for kernel in [Kernel::V6_12, Kernel::V7_2] {
        let none = Device { tx_queue_len: 0, ..device(kernel) };
        for (mut tree, after) in [(Tree::without_queue(none), 1000), (Tree::new(none), 0)] {
            let mut bench = Bench::new();
            tree.qdisc(&qdisc("add root handle 1: pfifo"), &mut bench.cx(0)).unwrap();
            assert_eq!(tree.device().tx_queue_len, after);
            assert_eq!(tree.dump_qdiscs(Time::ZERO)[0].options.u32("limit"), Some(after));
        }
    }
}

/// `get_xps_queue`: one queue takes all, of several the hash takes one, of none it takes one of the device's.
#[test]
fn the_processors_queues_are_chosen_among() {
    let mut bench = Bench::new();
    let mut tree = Tree::new(Device { tx_queues: 4, ..device(Kernel::V6_12) });
    let mut chosen = |tree: &mut Tree| {
        let mut found = std::collections::BTreeSet::new();
        for seq in 0..64u16 {
            let mut p = packet(u64::from(seq), 100);
            p.l4 = penstock_packet::L4::Udp(penstock_packet::Udp { sport: 1000 + seq, dport: 2000 });
            tree.enqueue(p, &mut bench.cx(0));
            while let Some(p) = tree.dequeue(&mut bench.cx(0)) {
                found.insert(p.rare().queue_mapping);
            }
        }
        found.into_iter().collect::<Vec<u16>>()
    };
    assert_eq!(chosen(&mut tree), [0, 1, 2, 3]);
    tree.set_xps(2, true);
    assert_eq!(chosen(&mut tree), [2]);
    tree.set_xps(0, true);
    tree.set_xps(0, true);
    assert_eq!(chosen(&mut tree), [0, 2]);
    tree.set_xps(2, false);
    assert_eq!(chosen(&mut tree), [0]);
    tree.set_xps(0, false);
    assert_eq!(chosen(&mut tree), [0, 1, 2, 3]);
}

#[test]
fn a_change_of_tbf_sets_the_limit_of_any_fifo_inside() {
    let mut bench = Bench::new();
    let mut tree = Tree::new(device(Kernel::V7_2));
    let tbf = |verb: &str, limit: u32| {
        let mut req = qdisc(&format!("{verb} root handle 1: tbf"));
        let o = Options::new().with("rate", 125_000u64).with("buffer", 200_000u32);
        req.options = Some(o.with("burst", 1600u32).with("limit", limit));
        req
    };
    tree.qdisc(&tbf("add", 9000), &mut bench.cx(0)).unwrap();
    tree.qdisc(&qdisc("add parent 1:1 handle 2: pfifo_head_drop limit 4"), &mut bench.cx(0)).unwrap();
    tree.qdisc(&tbf("change", 7000), &mut bench.cx(0)).unwrap();
    assert_eq!(tree.dump_qdiscs(Time::ZERO)[1].options.u32("limit"), Some(7000));
}
