//! Every kind against every request: nothing panics, and where the kernel's answer follows from the operations a kind
//! has, it is that.
//!
//! From the sources of linux v6.12 and v2.6.35: `net/sched/sch_api.c` `tc_ctl_tclass`, and the `Qdisc_class_ops` of each kind.

use crate::rig;

use penstock_model::rtnetlink::{ClassRequest, FilterRequest, QdiscRequest, Verb};
use penstock_model::{Handle, Kernel, KernelError, Options, Time};
use penstock_sched::{Device, Look, sch};
use rig::Rig;
use std::collections::BTreeMap;

const VERBS: [Verb; 6] = [Verb::Add, Verb::Change, Verb::Replace, Verb::Create, Verb::Link, Verb::Del];

/// What makes each kind: the place and the options of the first qdisc, then what makes a class of it.
fn made(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "ingress" | "clsact" => ("", ""),
        "bfifo" | "pfifo" | "prio" | "sfq" | "codel" | "drr" | "fq" | "fq_codel" | "fq_pie" | "hhf"
        | "mq" | "multiq" | "noqueue" | "pfifo_fast" | "pfifo_head_drop" | "pie" | "sfb" | "skbprio"
        | "cake" | "cake_mq" | "dualpi2" | "blackhole" | "atm" | "qfq" | "plug" => ("", ""),
        "cbq" => ("bandwidth 10mbit avpkt 1000", "bandwidth 10mbit rate 1mbit allot 1514 avpkt 1000"),
        "cbs" => ("idleslope 98688 sendslope -901312 hicredit 153 locredit -1389", ""),
        "choke" => ("limit 100 bandwidth 10mbit min 10 max 30 avpkt 1000 burst 15", ""),
        "dsmark" => ("indices 4", "mask 3 value 0xb8"),
        "etf" => ("clockid CLOCK_TAI delta 300000", ""),
        "ets" => ("bands 3 strict 1 quanta 1500 1500", "quantum 3000"),
        "gred" => ("setup DPs 3 default 1", ""),
        "hfsc" => ("default 10", "sc rate 1mbit"),
        "htb" => ("default 10", "rate 1mbit"),
        "mqprio" => ("num_tc 2 map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 hw 0", ""),
        "netem" => ("delay 1ms", ""),
        "red" => ("limit 60000 min 5000 max 15000 avpkt 1000 burst 20", ""),
        "taprio" => (
            "num_tc 2 map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 base-time 0 sched-entry S 03 1000000 clockid CLOCK_TAI",
            "",
        ),
        "tbf" => ("rate 1mbit burst 3000 limit 20000", ""),
        _ => ("", ""),
    }
}

/// A device of two queues with one qdisc of the kind and, where tc makes classes of it, one class.
fn with(kind: &str, kernel: Kernel) -> Option<Rig> {
    let mut rig = Rig::on(Device { tx_queues: 2, ..rig::device(kernel) });
    let (options, class) = made(kind);
    let line = match kind {
        "ingress" | "clsact" => format!("qdisc add dev eth0 {kind}"),
        _ => format!("qdisc add dev eth0 root handle 1: {kind} {options}"),
    };
    rig.tc(&line).ok()?;
    if !class.is_empty() {
        let line = format!(
            "class add dev eth0 parent 1: classid 1:{} {kind} {class}",
            if kind == "ets" { 2 } else { 1 }
        );
        // ets and dsmark change the classes they have.
        let line = if matches!(kind, "ets" | "dsmark") { line.replace(" add ", " change ") } else { line };
        rig.tc(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    Some(rig)
}

/// Everything that looks at a tree.
fn look(rig: &Rig) {
    rig.tree.dump_qdiscs(Time::ZERO);
    rig.tree.dump_invisible(Time::ZERO);
    rig.tree.dump_classes(Time::ZERO);
    for parent in handles() {
        rig.tree.show_filters(parent, Default::default(), Look { acts: &rig.acts, now: Time::ZERO });
        rig.tree.dump_chains(parent, None);
    }
}

fn handles() -> Vec<Handle> {
    let whole = |n: u32| Handle(n);
    [
        0,
        0x1_0000,
        0x1_0001,
        0x1_0002,
        0x1_0011,
        0x1_ffff,
        0x2_0001,
        0xffff_0000,
        0xffff_0001,
        0xffff_fff1,
        0xffff_fff2,
        0xffff_fff3,
        0xffff_ffff,
    ]
    .map(whole)
    .to_vec()
}

/// Kinds without class operations (`cl_ops` is `NULL`): any request about a class of theirs gives EINVAL.
const CLASSLESS: &[&str] = &[
    "bfifo",
    "blackhole",
    "codel",
    "etf",
    "fq",
    "fq_pie",
    "gred",
    "hhf",
    "noqueue",
    "pfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "pie",
    "plug",
];

/// What `change` and `delete` of a class that is there give, of kinds that have no such operation, or one that only refuses.
fn refusals(kind: &str, kernel: Kernel) -> Option<i32> {
    Some(match kind {
        // In 2.6.35 these still had operations that only said no.
        "netem" | "red" if kernel == Kernel::V2_6_35 => KernelError::ENOSYS,
        "cake_mq" | "clsact" | "ingress" | "mq" | "mqprio" | "multiq" | "netem" | "prio" | "red" | "sfq"
        | "taprio" | "tbf" => KernelError::EOPNOTSUPP,
        "sfb" => KernelError::ENOSYS,
        _ => return None,
    })
}

#[test]
fn every_class_request_of_every_kind() {
    let mut tried = BTreeMap::new();
    for kernel in Kernel::ALL {
        for spec in sch::KINDS.iter().filter(|k| k.kernels.contains(&kernel)) {
            if with(spec.id, kernel).is_none() {
                continue;
            }
            for verb in VERBS {
                for classid in handles() {
                    for parent in handles() {
                        for (named, options) in [(spec.id, None), ("htb", Some(Options::new()))] {
                            let kind = Some(named.to_owned());
                            let req = ClassRequest { verb, classid, parent, kind, options, estimator: None };
                            let mut rig = with(spec.id, kernel).expect("it was made before");
                            let there = rig.tree.dump_classes(Time::ZERO);
                            let answer = rig.call(|tree, cx| tree.class(&req, cx));
                            look(&rig);
                            *tried.entry((kernel, spec.id)).or_insert(0) += 1;
                            let own = if matches!(spec.id, "ingress" | "clsact") { 0xffff } else { 1 };
                            // 6.12 refuses ffff:ffff before it asks the kind.
                            let direct = classid != Handle::ROOT
                                && classid.major() == own
                                && (parent == Handle::UNSPEC || parent == classid.qdisc());
                            if !direct {
                                continue;
                            }
                            let errno = answer.as_ref().err().map(|e| e.errno);
                            let why = format!("{kernel} {} {req:?}: {answer:?}", spec.id);
                            if CLASSLESS.contains(&spec.id) {
                                assert_eq!(errno, Some(KernelError::EINVAL), "{why}");
                            }
                            let shown = there.iter().any(|c| c.classid == classid)
                                || spec.id == "ingress"
                                || spec.id == "clsact" && matches!(classid.minor(), 0xfff2 | 0xfff3);
                            if let (Some(want), true) = (refusals(spec.id, kernel), shown) {
                                let want = if verb == Verb::Add { KernelError::EEXIST } else { want };
                                assert_eq!(errno, Some(want), "{why}");
                            }
                            if refusals(spec.id, kernel).is_some() && answer.is_ok() {
                                panic!("no class can be made: {why}");
                            }
                        }
                    }
                }
            }
        }
    }
    // Kinds that could not be made at all would be tried in vain.
    let kinds: Vec<&str> = tried.keys().filter(|k| k.0 >= Kernel::V6_12).map(|k| k.1).collect();
    let missing: Vec<&str> = sch::KINDS
        .iter()
        .filter(|k| Kernel::LIVING.iter().any(|l| k.kernels.contains(l)) && !kinds.contains(&k.id))
        .map(|k| k.id)
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "kinds without a line that makes them");
}

#[test]
fn every_qdisc_filter_and_chain_request_of_every_kind() {
    for kernel in Kernel::ALL {
        for spec in sch::KINDS.iter().filter(|k| k.kernels.contains(&kernel)) {
            if with(spec.id, kernel).is_none() {
                continue;
            }
            for verb in VERBS {
                for parent in handles() {
                    for handle in handles() {
                        for named in [spec.id, "pfifo", "clsact"] {
                            for options in [None, Some(Options::new())] {
                                let req = QdiscRequest {
                                    verb,
                                    handle,
                                    parent,
                                    kind: Some(named.to_owned()),
                                    options,
                                    estimator: None,
                                    stab: None,
                                    ingress_block: None,
                                    egress_block: None,
                                };
                                let mut rig = with(spec.id, kernel).expect("it was made before");
                                let _ = rig.call(|tree, cx| tree.qdisc(&req, cx));
                                look(&rig);
                            }
                        }
                    }
                    for kind in [None, Some("fw"), Some("u32"), Some("nonsense")] {
                        let req = FilterRequest {
                            verb,
                            block: 0,
                            parent,
                            protocol: 3,
                            prio: 7,
                            chain: None,
                            handle: 1,
                            kind: kind.map(str::to_owned),
                            options: Some(Options::new()),
                            estimator: None,
                        };
                        let mut rig = with(spec.id, kernel).expect("it was made before");
                        let _ = rig.call(|tree, cx| tree.filter(&req, cx));
                        let _ = rig.tree.get_filter(&req, Look { acts: &rig.acts, now: Time::ZERO });
                        let _ = rig.call(|tree, _| tree.chain(&req));
                        let _ = rig.tree.get_chain(&req);
                        look(&rig);
                    }
                }
            }
        }
    }
}

#[test]
fn classes_at_the_ingress_hook() {
    // Found by `clsact` with a class on `ffff:`, which the tree does not hold below its root.
    let not_supported = Err("RTNETLINK answers: Operation not supported".to_owned());
    for kind in ["clsact", "ingress"] {
        let mut rig = Rig::with(Kernel::V6_12, &[&format!("qdisc add dev eth0 {kind}")]);
        let minor = if kind == "clsact" { "fff2" } else { "1" };
        let fresh = "class add dev eth0 parent ffff: classid ffff:1 htb rate 5mbit";
        let there = Err("RTNETLINK answers: File exists".to_owned());
        // ingress has a class of any number.
        assert_eq!(rig.tc(fresh), if kind == "clsact" { not_supported.clone() } else { there });
        assert_eq!(rig.tc(&format!("class del dev eth0 classid ffff:{minor}")), not_supported);
        assert_eq!(
            rig.tc(&format!("class change dev eth0 classid ffff:{minor} htb rate 5mbit")),
            not_supported
        );
    }
}
