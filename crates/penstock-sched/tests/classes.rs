//! Kinds with classes, command by command: what the real tc 6.1.0 printed on Linux 6.12.117; of cbq, what the last
//! generation of it, carried over to that kernel, gave; of dsmark and atm, which no kernel has any more, what the sources say.

use crate::typed;

use penstock_model::Kernel;
use penstock_sched::Tree;
use typed::{Bench, device};

fn eth(kernel: Kernel) -> Bench {
    Bench::new(Tree::new(device(1, kernel)))
}

#[test]
fn hfsc() {
    let mut d = eth(Kernel::V6_12);
    d.gives("qdisc add dev d root handle 1: hfsc default 10", "");
    d.gives("class add dev d parent 1: classid 1:1 hfsc sc rate 10mbit ul rate 10mbit", "");
    d.gives("class add dev d parent 1:1 classid 1:10 hfsc rt umax 1500 dmax 10ms rate 1mbit", "");
    let warning = "Warning: Forced curve change on parent 'rt' to 'sc'.\n";
    d.gives("class add dev d parent 1:10 classid 1:11 hfsc ls m1 5mbit d 20ms m2 1mbit", warning);
    let incomplete = "Command line is not complete. Try option \"help\"\n";
    d.gives("class add dev d parent 1:1 classid 1:12 hfsc sc m1 1mbit", incomplete);
    d.gives("class add dev d parent 1:1 classid 1:12 hfsc rt m1 1mbit foo", "HFSC: Illegal \"rt\"\n");
    let counts = " Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n";
    let shown: String = [
        ("class hfsc 1: root ", 3),
        ("class hfsc 1:11 parent 1:10 ls m1 5Mbit d 20ms m2 1Mbit ", 0),
        ("class hfsc 1:1 parent 1: sc m1 0bit d 0us m2 10Mbit ul m1 0bit d 0us m2 10Mbit ", 2),
        ("class hfsc 1:10 parent 1:1 sc m1 1200Kbit d 10ms m2 1Mbit ", 1),
    ]
    .into_iter()
    .map(|(class, level)| format!("{class}\n{counts} period 0 level {level} \n\n"))
    .collect();
    d.gives("-s class show dev d", &shown);
    d.gives("class del dev d classid 1:10", "Error: HFSC class in use.\n");
    d.gives("class del dev d classid 1:11", "");
    d.gives("qdisc change dev d root hfsc default 20", "");
    d.gives("qdisc show dev d", "qdisc hfsc 1: root refcnt 2 default 20 \n");
    d.gives(
        "class add dev d parent 1:9 classid 1:12 hfsc ls rate 1mbit",
        "RTNETLINK answers: No such file or directory\n",
    );
}

/// `tc_bind_tclass` walks over classes, of which hfsc's qdisc is one and htb's is none: a deletion that is refused has the qdisc's filters let go of the
/// class all the same.
#[test]
fn filters_let_go_of_a_class_that_stays() {
    for kernel in [Kernel::V6_12, Kernel::V7_2] {
        let mut d = eth(kernel);
        d.gives("qdisc add dev d root handle 1: hfsc", "");
        d.gives("class add dev d parent 1: classid 1:1 hfsc ls rate 1mbit", "");
        d.gives("filter add dev d parent 1: protocol all prio 1 matchall classid 1:1", "");
        d.gives("class del dev d classid 1:1", "Error: HFSC class in use.\n");
        d.gives("class del dev d classid 1:1", "");
        d.gives("qdisc replace dev d root handle 2: htb", "");
        d.gives("class add dev d parent 2: classid 2:1 htb rate 1mbit", "");
        d.gives("filter add dev d parent 2: protocol all prio 1 matchall classid 2:1", "");
        d.gives("class del dev d classid 2:1", "Error: HTB class in use.\n");
        d.gives("class del dev d classid 2:1", "Error: HTB class in use.\n");
    }
}

#[test]
fn drr_and_qfq() {
    let mut d = eth(Kernel::V6_12);
    d.gives("qdisc add dev d root handle 1: drr", "");
    d.gives(
        "class add dev d parent 1: classid 1:1 drr quantum 0",
        "Error: Specified DRR quantum cannot be zero.\n",
    );
    d.gives("class add dev d parent 1: classid 1:1 drr quantum 1", "");
    d.gives("class add dev d parent 1: classid 1:1 drr", "RTNETLINK answers: File exists\n");
    d.gives("class add dev d parent 1: drr", "");
    d.gives("class show dev d", "class drr  root quantum 1514b \nclass drr 1:1 root quantum 256b \n");
    d.gives("qdisc replace dev d root handle 2: qfq", "");
    for weight in ["weight 0", "weight 1025", "weight 1000 maxpkt 511"] {
        d.gives(
            &format!("class add dev d parent 2: classid 2:1 qfq {weight}"),
            "Error: integer out of range.\n",
        );
    }
    d.gives("class add dev d parent 2: classid 2:1 qfq weight 1000 maxpkt 512", "");
    d.gives("class add dev d parent 2: classid 2:3 qfq", "");
    let shown = "class qfq 2:1 root weight 1000 maxpkt 512 \nclass qfq 2:3 root weight 1 maxpkt 1514 \n";
    d.gives("class show dev d", shown);
}

#[test]
fn ets() {
    let mut d = eth(Kernel::V6_12);
    d.gives("qdisc add dev d root handle 1: ets bands 5 strict 2 quanta 1000 2000 priomap 4 3 2", "");
    let shown = "qdisc ets 1: root refcnt 2 bands 5 strict 2 quanta 1000 2000 1514 priomap 4 3 2 4 4 4 4 4 4 4 4 4 4 4 4 4 \n";
    d.gives("qdisc show dev d", shown);
    let strict = "Error: Strict bands do not have a configurable quantum.\n";
    d.gives("class change dev d classid 1:1 ets quantum 3000", strict);
    d.gives("class change dev d classid 1:3 ets quantum 3000", "");
    let fixed = "Error: Fine-grained class addition and removal is not supported.\n";
    d.gives("class add dev d parent 1: classid 1:9 ets quantum 3000", fixed);
    d.gives("class del dev d classid 1:3", "RTNETLINK answers: Operation not supported\n");
    d.gives("qdisc change dev d root ets bands 2", "");
    let shown =
        "qdisc ets 1: root refcnt 2 bands 2 quanta 1514 1514 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 \n";
    d.gives("qdisc show dev d", shown);
}

#[test]
fn cbs_and_etf() {
    let mut d = eth(Kernel::V6_12);
    d.gives("qdisc add dev d root handle 1: cbs hicredit 10 locredit -10 sendslope -90 idleslope 10", "");
    let cbs = "qdisc cbs 1: root refcnt 2 hicredit 10 locredit -10 sendslope -90 idleslope 10 offload 0 \n";
    d.gives("qdisc show dev d", &format!("{cbs}qdisc pfifo 0: parent 1: limit 1000p\n"));
    d.gives("qdisc add dev d parent 1:1 handle 5: pfifo", "");
    d.gives("-s class show dev d", "class cbs 1:1 parent 1: leaf 5: \n\n");
    d.gives("qdisc del dev d parent 1:1", "");
    d.gives("qdisc show dev d invisible", cbs);
    d.gives("qdisc replace dev d root handle 2: etf delta 10 clockid TAI", "");
    let etf =
        "qdisc etf 2: root refcnt 2 clockid TAI delta 10 offload off deadline_mode off skip_sock_check off\n";
    d.gives("qdisc show dev d", etf);
    d.gives(
        "qdisc change dev d root etf clockid TAI",
        "Error: Change operation not supported by specified qdisc.\n",
    );
    d.gives(
        "qdisc replace dev d root handle 3: etf delta 10",
        "Error: Dynamic clockids are not supported.\n",
    );
}

const CBQ: [&str; 3] = [
    "qdisc add dev d root handle 1: cbq bandwidth 10Mbit avpkt 1000 cell 8",
    "class add dev d parent 1: classid 1:4 cbq bandwidth 10Mbit rate 100Kbit weight 10Kbit prio 2 allot 1514 cell 8 maxburst 5 avpkt 1000",
    "class add dev d parent 1:4 classid 1:5 cbq bandwidth 10Mbit rate 50Kbit prio 8 allot 1514 cell 8 maxburst 2 avpkt 1000 bounded split 1:0 defmap c0",
];

#[test]
fn cbq() {
    for kernel in Kernel::BEFORE_7 {
        let mut d = eth(kernel);
        for line in CBQ {
            d.gives(line, "");
        }
        let qdisc = match kernel {
            Kernel::V6_12 | Kernel::V7_2 => {
                "qdisc cbq 1: root refcnt 2 rate 10Mbit (bounded,isolated) prio no-transmit\n"
            }
            Kernel::V2_6_35 => {
                "qdisc cbq 1: root refcnt 2 rate 10000Kbit (bounded,isolated) prio no-transmit\n"
            }
        };
        d.gives("qdisc show dev d", qdisc);
        let again = d.tc(CBQ[1]);
        assert_eq!(again, "RTNETLINK answers: File exists\n");
        assert_eq!(d.tc("class del dev d classid 1:4"), "RTNETLINK answers: Device or resource busy\n");
        let no_rate = "class add dev d parent 1: classid 1:9 cbq bandwidth 10mbit allot 1514 prio 5";
        let want = match kernel {
            Kernel::V6_12 | Kernel::V7_2 => {
                "Error: One of the following attributes MUST be specified: WRR, rate or link sharing.\n"
            }
            Kernel::V2_6_35 => "RTNETLINK answers: Invalid argument\n",
        };
        d.gives(no_rate, want);
        d.gives("class change dev d classid 1:5 cbq prio 3 allot 1514", "");
    }
    let mut d = eth(Kernel::V6_12);
    for line in CBQ {
        d.gives(line, "");
    }
    let shown = d.tc("-d class show dev d");
    for line in [
        "class cbq 1: root rate 10Mbit linklayer ethernet cell 8b (bounded,isolated) prio no-transmit/8 weight 10Mbit allot 1514b \nlevel 2 ewma 5 avpkt 1000b maxidle 24us \n",
        "class cbq 1:4 parent 1: rate 100Kbit linklayer ethernet cell 8b prio 2/2 weight 10240bit allot 1514b \nlevel 1 ewma 5 avpkt 1000b maxidle 13.6ms \n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let idle = d.tc("-s class show dev d classid 1:");
    assert!(idle.contains("  borrowed 0 overactions 0 avgidle 12500 undertime 0\n"), "{idle}");
    assert!(shown.contains("\nsplit 1: defmap 000000c0\n"), "{shown}");
    d.gives("qdisc add dev d root cbq avpkt 1000", "CBQ: bandwidth is required parameter.\n");
    d.gives("qdisc add dev d root cbq bandwidth 1mbit", "CBQ: \"avpkt\" is required.\n");
    d.gives(
        "class add dev d parent 1: cbq rate 1mbit maxburst 2",
        "CBQ: avpkt is required for max/minburst.\n",
    );
}

#[test]
fn dsmark_and_atm() {
    for kernel in Kernel::BEFORE_7 {
        let mut d = eth(kernel);
        d.gives("qdisc add dev d root handle 1: dsmark indices 3", "RTNETLINK answers: Invalid argument\n");
        d.gives("qdisc add dev d root handle 1: dsmark indices 64 default_index 4 set_tc_index", "");
        let shown = "qdisc dsmark 1: root refcnt 2 indices 0x0040 default_index 0x0004 set_tc_index \n";
        d.gives("qdisc show dev d", shown);
        d.gives("class add dev d classid 1:1 dsmark mask 0x3 value 0xb8", "RTNETLINK answers: File exists\n");
        d.gives("class change dev d classid 1:1 dsmark mask 0x3 value 0xb8", "");
        d.gives(
            "class change dev d classid 1:40 dsmark mask 0x3",
            "RTNETLINK answers: No such file or directory\n",
        );
        d.gives("qdisc add dev d parent 1:0 handle 2: pfifo limit 5", "");
        d.gives("class show dev d", "class dsmark 1:1 parent 1: leaf 2: mask 0x03 value 0xb8 \n");
        d.gives("class del dev d classid 1:1", "");
        d.gives("class show dev d", "");
        d.gives("qdisc replace dev d root handle 3: atm", "");
        let class = "class add dev d parent 3: classid 3:1 atm pvc 0.0.32 hdr 00.11 excess clp";
        d.gives(class, "socket: Address family not supported by protocol\n");
        d.gives("class show dev d", "class atm 3: parent 3: hdr . excess clp \n");
    }
}

#[test]
fn what_2010_did_not_have() {
    let mut d = eth(Kernel::V2_6_35);
    for kind in ["qfq", "ets", "cbs", "etf", "mqprio", "taprio"] {
        let want = format!("Unknown qdisc \"{kind}\", hence option \"x\" is unparsable\n");
        d.gives(&format!("qdisc add dev d root {kind} x"), &want);
        d.gives(&format!("qdisc add dev d root {kind}"), "RTNETLINK answers: No such file or directory\n");
    }
    d.gives("qdisc add dev d root handle 1: hfsc default 1", "");
    d.gives("qdisc show dev d", "qdisc hfsc 1: root refcnt 2 default 1 \n");
}
