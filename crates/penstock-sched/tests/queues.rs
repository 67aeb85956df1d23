//! Kinds for devices with several transmit queues, command by command: what the real tc 6.1.0 printed on Linux 6.12.117.

use crate::typed;

use penstock_model::Kernel;
use penstock_sched::Tree;
use typed::{Bench, device};

/// `numtxqueues 4 type dummy`, up.
fn dummy() -> Bench {
    Bench::new(Tree::without_queue(device(4, Kernel::V6_12)))
}

const FAST: &str = "bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n";
/// `pfifo_fast` in these queues.
fn fast(parents: &[&str]) -> String {
    parents.iter().map(|parent| format!("qdisc pfifo_fast 0: parent {parent} {FAST}")).collect()
}

#[test]
fn mq() {
    let mut d = dummy();
    d.gives("qdisc show dev d", "qdisc noqueue 0: root refcnt 2 \n");
    d.gives("qdisc add dev d root handle 1: mq", "");
    let all = fast(&["1:4", "1:3", "1:2", "1:1"]);
    d.gives("qdisc show dev d", &format!("qdisc mq 1: root \n{all}"));
    d.gives("qdisc add dev d parent 1:2 handle 2: prio", "");
    d.gives("qdisc add dev d parent 2:2 handle 3: mq", "RTNETLINK answers: Operation not supported\n");
    let class = "class mq 1:1 root \nclass mq 1:2 root leaf 2: \nclass mq 1:3 root \nclass mq 1:4 root \n";
    let prio = "class prio 2:1 parent 2: \nclass prio 2:2 parent 2: \nclass prio 2:3 parent 2: \n";
    d.gives("class show dev d", &format!("{class}{prio}"));
    d.gives("qdisc del dev d parent 1:2", "");
    let rest = fast(&["1:4", "1:3", "1:1"]);
    d.gives("qdisc show dev d", &format!("qdisc mq 1: root \n{rest}"));
    d.gives("qdisc replace dev d root handle 1: mq", "");
    d.gives("qdisc replace dev d root handle 2: mq", "");
    d.gives("qdisc replace dev d root mq", "");
    let all = fast(&["2:4", "2:3", "2:2", "2:1"]);
    d.gives("qdisc show dev d", &format!("qdisc mq 2: root \n{all}"));
    d.gives("qdisc add dev d root handle 9: est 1s 8s mq", "Error: NLM_F_REPLACE needed to override.\n");
}

#[test]
fn mq_is_the_default_of_a_device_with_queues() {
    let mut d = Bench::new(Tree::new(device(3, Kernel::V6_12)));
    let default = format!("qdisc mq 0: root \n{}", fast(&[":3", ":2", ":1"]));
    d.gives("qdisc show dev d", &default);
    d.gives("qdisc add dev d parent :1 pfifo", "Error: Failed to find specified qdisc.\n");
    d.gives("qdisc add dev d root handle 7: pfifo limit 32", "");
    d.gives("qdisc show dev d", "qdisc pfifo 7: root refcnt 4 limit 32p\n");
    d.gives("qdisc del dev d root", "");
    d.gives("qdisc show dev d", &default);
}

#[test]
fn multiq() {
    let mut d = dummy();
    d.gives("qdisc add dev d root handle 1: multiq", "");
    d.gives("qdisc show dev d", "qdisc multiq 1: root refcnt 5 bands 4/4 \n");
    d.gives("qdisc add dev d parent 1:2 handle 2: pfifo", "");
    d.gives("qdisc del dev d parent 1:2", "");
    let rest = "qdisc pfifo 0: parent 1:4 limit 1000p\nqdisc pfifo 0: parent 1:3 limit 1000p\nqdisc pfifo 0: parent 1:1 limit 1000p\n";
    d.gives("qdisc show dev d invisible", &format!("qdisc multiq 1: root refcnt 5 bands 4/4 \n{rest}"));
    let class = "class multiq 1:1 parent 1: \nclass multiq 1:2 parent 1: \nclass multiq 1:3 parent 1: \nclass multiq 1:4 parent 1: \n";
    d.gives("class show dev d", class);
    let mut d = Bench::new(Tree::new(device(1, Kernel::V6_12)));
    d.gives("qdisc add dev d root multiq", "RTNETLINK answers: Operation not supported\n");
}

#[test]
fn mqprio() {
    let mut d = dummy();
    let no_card = "Error: Device does not support hardware offload.\n";
    d.gives("qdisc add dev d root handle 1: mqprio", no_card);
    let add = "qdisc add dev d root handle 1: mqprio num_tc 2 map 0 1 0 1 queues 1@0 3@1 hw 0";
    d.gives(add, "");
    let map = "map 0 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0 ";
    let tail = "             mode:dcb\n             shaper:dcb\n";
    let all = fast(&["1:4", "1:3", "1:2", "1:1"]);
    let head = format!("qdisc mqprio 1: root tc 2 {map}\n             queues:(0:0) (1:3) \n");
    d.gives("qdisc show dev d", &format!("{head}{tail}{all}"));
    let json = d.tc("-j qdisc show dev d");
    let want = r#"[{"kind":"mqprio","handle":"1:","root":true,"options":{"tc":2,"map":[0,1,0,1,0,0,0,0,0,0,0,0,0,0,0,0],"queues":[[0,0],[1,3]],"mode":"dcb","shaper":"dcb"}},"#;
    assert!(json.starts_with(want), "{json}");
    let class = "class mqprio 1:ffe0 root \nclass mqprio 1:ffe1 root \nclass mqprio 1:1 parent 1:ffe0 \n\
                 class mqprio 1:2 parent 1:ffe1 \nclass mqprio 1:3 parent 1:ffe1 \nclass mqprio 1:4 parent 1:ffe1 \n";
    d.gives("class show dev d", class);
    // What fails takes the traffic classes of what stands with it.
    d.gives(
        "qdisc replace dev d root handle 2: mqprio num_tc 2 map 0 1 0 1 queues 1@0 4@1 hw 0",
        "Error: sch_mqprio_lib: Queues 4:1 for TC 1 exceed the 4 TX queues available.\n",
    );
    let head = format!("qdisc mqprio 1: root tc 0 {map}\n             queues:\n");
    d.gives("qdisc show dev d", &format!("{head}{tail}{all}"));
    d.gives("qdisc del dev d root", "");
    d.gives(add, "");
    d.gives("qdisc replace dev d root handle 2: mqprio num_tc 3 map 0 1 0 1 queues 1@0 2@1 1@3 hw 0", "");
    let all = fast(&["2:4", "2:3", "2:2", "2:1"]);
    let head = format!("qdisc mqprio 2: root tc 0 {map}\n             queues:\n");
    d.gives("qdisc show dev d", &format!("{head}{tail}{all}"));
    let class = "class mqprio 2:1 parent 2:ffe0 \nclass mqprio 2:2 parent 2:ffe0 \n\
                 class mqprio 2:3 parent 2:ffe0 \nclass mqprio 2:4 parent 2:ffe0 \n";
    d.gives("class show dev d", class);
}

/// In the form that tc 7.3.0 printed on Linux 7.2.13.
#[test]
fn preemption_and_the_largest_frames_are_shown_since_7() {
    let mut d = Bench::new(Tree::without_queue(device(4, Kernel::V7_2)));
    let mqprio = "qdisc add dev d root handle 1: mqprio num_tc 2 map 0 1 queues 1@0 1@1 hw 0";
    let only = "Error: mqprio TCA_OPTIONS can only contain netlink attributes in hardware mode.\n";
    d.gives(&format!("{mqprio} fp E E"), only);
    d.gives(mqprio, "");
    let all = fast(&["1:4", "1:3", "1:2", "1:1"]);
    let map = "map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ";
    let tail = "             mode:dcb\n             shaper:dcb\n             fp: E E E E E E E E E E E E E E E E\n\n";
    let head = format!("qdisc mqprio 1: root tc 2 {map}\n             queues:(0:0) (1:1) \n");
    d.gives("qdisc show dev d", &format!("{head}{tail}{all}"));
    d.gives("qdisc del dev d root", "");
    let entries = "sched-entry S 1 300000 sched-entry S 2 200000 clockid CLOCK_TAI";
    d.gives(
        &format!("qdisc add dev d root handle 100: taprio num_tc 2 map 0 1 queues 1@0 1@1 {entries}"),
        "Warning: sch_taprio: Size table not specified, frame length estimations may be inaccurate.\n",
    );
    let pfifos: String =
        (1..=4).rev().map(|q| format!("qdisc pfifo 0: parent 100:{q} limit 1000p\n")).collect();
    let shown = "qdisc taprio 100: root refcnt 5 tc 2 map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
                 queues offset 0 count 1 offset 1 count 1\n\
                 clockid TAI\tbase-time 0 cycle-time 500000 cycle-time-extension 0\n\
                 \tindex 0 cmd S gatemask 0x1 interval 300000\n\
                 \tindex 1 cmd S gatemask 0x2 interval 200000\n\
                 max-sdu 361 236 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
                 fp E E E E E E E E E E E E E E E E\n";
    d.gives("qdisc show dev d", &format!("{shown}\n{pfifos}"));
}

#[test]
fn taprio() {
    let mut d = dummy();
    let warning =
        "Warning: sch_taprio: Size table not specified, frame length estimations may be inaccurate.\n";
    d.gives(
        "qdisc add dev d root handle 1: taprio num_tc 2 map 0 1 0 1 queues 1@0 1@1 \
         sched-entry S 01 300000 sched-entry S 02 400000 clockid CLOCK_TAI",
        warning,
    );
    let head = "qdisc taprio 1: root refcnt 5 tc 2 map 0 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0\n\
                queues offset 0 count 1 offset 1 count 1\n\
                clockid TAI\tbase-time 0 cycle-time 700000 cycle-time-extension 0\n\
                \tindex 0 cmd S gatemask 0x1 interval 300000\n\
                \tindex 1 cmd S gatemask 0x2 interval 400000\n";
    let pfifos: String =
        (1..=4).rev().map(|q| format!("qdisc pfifo 0: parent 1:{q} limit 1000p\n")).collect();
    d.gives("qdisc show dev d", &format!("{head}\n{pfifos}"));
    let json = d.tc("-j qdisc show dev d");
    let want = concat!(
        r#"[{"kind":"taprio","handle":"1:","root":true,"refcnt":5,"options":{"tc":2,"map":[0,1,0,1,0,0,0,0,0,0,0,0,0,0,0,0],"#,
        r#""queues":[{"offset":0,"count":1},{"offset":1,"count":1}],"clockid":"TAI","base_time":0,"cycle_time":700000,"cycle_time_extension":0,"#,
        r#""schedule":[{"index":0,"cmd":"S","gatemask":"0x1","interval":300000},{"index":1,"cmd":"S","gatemask":"0x2","interval":400000}]}},"#,
    );
    assert!(json.starts_with(want), "{json}");
    d.gives(
        "class show dev d",
        "class taprio 1:1 root \nclass taprio 1:2 root \nclass taprio 1:3 root \nclass taprio 1:4 root \n",
    );
    let change = "qdisc change dev d root taprio";
    let coming = "sched-entry S 03 500000 base-time 4000000000000000000 clockid CLOCK_TAI";
    d.gives(&format!("{change} num_tc 2 map 0 1 0 1 queues 1@0 1@1 {coming}"), warning);
    let admin = "\tbase-time 4000000000000000000 cycle-time 500000 cycle-time-extension 0\n\
                 \tindex 0 cmd S gatemask 0x3 interval 500000\n";
    d.gives("qdisc show dev d", &format!("{head}{admin}\n{pfifos}"));
    for (options, sentence) in [
        (
            "num_tc 2 map 0 1 0 1 queues 1@0 1@2 sched-entry S 03 500000 clockid CLOCK_TAI",
            "Changing the traffic mapping of a running schedule is not supported",
        ),
        ("flags 4", "reserved bit set"),
        ("sched-entry S 1 100 clockid CLOCK_TAI", "Invalid interval for schedule entry"),
        (
            "sched-entry S 1 100000 clockid CLOCK_REALTIME",
            "Changing the 'clockid' of a running schedule is not supported",
        ),
        ("sched-entry S 1 100000 cycle-time 10 clockid CLOCK_TAI", "'cycle_time' is too small"),
        ("sched-entry S 1 100000 cycle-time -10 clockid CLOCK_TAI", "integer out of range"),
        (
            "sched-entry S 1 100000 txtime-delay 10 clockid CLOCK_TAI",
            "sch_taprio: txtime-delay can only be set when txtime-assist mode is enabled",
        ),
    ] {
        d.gives(&format!("{change} {options}"), &format!("Error: {sentence}.\n"));
    }
    // What a refused change has said stays.
    let plain = format!("{change} sched-entry S 1 100000 clockid CLOCK_TAI");
    d.gives(&plain, warning);
    d.gives(&format!("{plain} fp E P"), "Error: Preemption only supported with full offload.\n");
    d.gives(&plain, "Error: Preemption only supported with full offload.\n");
    d.gives(&format!("{plain} fp E E"), warning);
    let mut d = Bench::new(Tree::new(device(1, Kernel::V6_12)));
    d.gives(
        "qdisc add dev d root handle 1: taprio num_tc 2",
        "Error: sch_taprio: Multi-queue device is required.\n",
    );
    d.gives("qdisc del dev d root", "Error: Cannot delete qdisc with handle of zero.\n");
}
