//! `tc actions`, and filters with actions, through both halves. The texts are those of iproute2 6.1.0 on linux 6.12.117.

use penstock_host::Host;
use penstock_model::{Kernel, Time};

/// A machine with a dummy's stead.
fn machine(kernel: Kernel) -> Host {
    let mut host = Host::new("m", kernel, 1);
    host.add_device("d0");
    host
}

/// Executes a line: exit code, then what was written.
fn run(host: &mut Host, line: &str) -> (i32, String) {
    let output = host.exec(line, Time::ZERO);
    (output.status, output.stdout + &output.stderr)
}

fn check(host: &mut Host, line: &str, status: i32, text: &str) {
    assert_eq!(run(host, line), (status, text.to_owned()), "{line}");
}

#[test]
fn a_table_of_gact() {
    let mut host = machine(Kernel::V6_12);
    let m = &mut host;
    check(m, "tc actions add action pass index 1", 0, "");
    let exists = "RTNETLINK answers: File exists\nWe have an error talking to the kernel\n";
    check(m, "tc actions add action pass index 1", 255, exists);
    check(m, "tc actions add action drop random determ pass 5 cookie abcd no_percpu", 0, "");
    let got = "total acts 0\n\n\taction order 1: gact action drop\n\t random type determ pass val 5\n\t index 2 ref 1 bind 0\n\
               \tcookie abcd\n\tno_percpu\tnot_in_hw\n";
    check(m, "tc actions get action gact index 2", 0, got);
    let listed = "total acts 2\n\n\taction order 0: gact action pass\n\t random type none pass val 0\n\t index 1 ref 1 bind 0\n\
                  \tnot_in_hw\n\tused_hw_stats disabled\n\n\taction order 1: gact action drop\n\t random type determ pass val 5\n\
                  \t index 2 ref 1 bind 0\n\tcookie abcd\n\tno_percpu\tnot_in_hw\n\tused_hw_stats disabled\n";
    check(m, "tc actions ls action gact", 0, listed);
    let json = "[{\"total acts\":2},{\"actions\":[{\"order\":0,\"kind\":\"gact\",\"index\":1},\
                {\"order\":1,\"kind\":\"gact\",\"index\":2,\"cookie\":\"abcd\"}]}]\n";
    check(m, "tc -br -j actions ls action gact", 0, json);
    check(m, "tc actions ls action bpf", 0, "");
    check(m, "tc actions flush action gact", 0, "");
    let gone = "Error: TC action with specified index not found.\nWe have an error talking to the kernel\n\
                Command \"action\" is unknown, try \"tc actions help\".\n";
    check(m, "tc actions del action gact index 1", 255, gone);
    let unknown = "Error: Cannot flush unknown TC action.\nWe have an error flushing\n";
    check(m, "tc actions flush action nosuch", 1, unknown);
}

#[test]
fn a_list_is_made_whole_or_not_at_all() {
    let mut host = machine(Kernel::V6_12);
    let m = &mut host;
    let again =
        "RTNETLINK answers: Resource temporarily unavailable\nWe have an error talking to the kernel\n";
    check(m, "tc actions add action pass index 1 action pass index 1", 255, again);
    let chain = "Error: can't goto NULL proto/chain.\nWe have an error talking to the kernel\n";
    check(m, "tc actions add action pass index 1 action goto chain 3", 255, chain);
    check(m, "tc actions ls action gact", 0, "");
    let empty = "bad action empty 1\nparse_action: bad value (0:(null))!\nIllegal \"action\"\n";
    check(m, "tc actions add action", 255, empty);
    let warning = "Warning: act_api: Failed to setup tc actions for offload.\n";
    check(m, "tc actions add action police rate 1mbit burst 10k", 0, warning);
    let listed = "total acts 1\n\n\taction order 0:  police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action reclassify overhead 0b \n\
                  \tref 1 bind 0 \n\tnot_in_hw\n\tused_hw_stats disabled\n";
    check(m, "tc actions ls action police", 0, listed);
}

#[test]
fn filters_hold_their_actions() {
    let mut host = machine(Kernel::V6_12);
    let m = &mut host;
    let filter = "tc filter add dev d0 parent 1: protocol ip";
    check(m, "tc qdisc add dev d0 root handle 1: prio", 0, "");
    check(m, "tc actions add action pipe index 5", 0, "");
    let police = "police rate 1mbit burst 10k drop flowid 1:1";
    check(m, &format!("{filter} prio 1 u32 match ip dst 10.0.0.1 {police}"), 0, "");
    let two = "action police rate 1mbit burst 10k conform-exceed drop/pass action mirred egress redirect dev d0 flowid 1:2";
    check(m, &format!("{filter} prio 1 u32 match ip dst 10.0.0.2 {two}"), 0, "");
    check(m, &format!("{filter} prio 2 handle 1 fw {police}"), 0, "");
    check(m, &format!("{filter} prio 2 handle 2 fw classid 1:1 action gact index 5"), 0, "");
    let shown = "filter protocol ip pref 1 u32 chain 0 \n\
        filter protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1 \n\
        filter protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 1:1 not_in_hw \n\
        \x20 match 0a000001/ffffffff at 16\n\
        \x20police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action drop overhead 0b \n\tref 1 bind 1 \n\n\
        filter protocol ip pref 1 u32 chain 0 fh 800::801 order 2049 key ht 800 bkt 0 *flowid 1:2 not_in_hw \n\
        \x20 match 0a000002/ffffffff at 16\n\
        \taction order 1:  police 0x2 rate 1Mbit burst 10Kb mtu 2Kb action drop overhead 0b \n\tref 1 bind 1 \n\n\
        \taction order 2: mirred (Egress Redirect to device d0) stolen\n\tindex 1 ref 1 bind 1\n\n\
        filter protocol ip pref 2 fw chain 0 \n\
        filter protocol ip pref 2 fw chain 0 handle 0x1 classid 1:1  police 0x3 rate 1Mbit burst 10Kb mtu 2Kb action drop overhead 0b \n\
        \tref 1 bind 1 \n\n\
        filter protocol ip pref 2 fw chain 0 handle 0x2 classid 1:1 \n\n\
        \taction order 1: gact action pipe\n\t random type none pass val 0\n\t index 5 ref 2 bind 1\n\n";
    check(m, "tc filter show dev d0 parent 1:", 0, shown);
    let busy = "Error: Failed to delete TC action.\nWe have an error talking to the kernel\n\
                Command \"action\" is unknown, try \"tc actions help\".\n";
    check(m, "tc actions del action gact index 5", 255, busy);
    let held = "RTNETLINK answers: Operation not permitted\nWe have an error flushing\n";
    check(m, "tc actions flush action police", 1, held);
    // What dies with its qdisc lets go; what was made by itself stays.
    check(m, "tc qdisc del dev d0 root", 0, "");
    for kind in ["police", "mirred"] {
        check(m, &format!("tc actions ls action {kind}"), 0, "");
    }
    check(m, "tc actions del action gact index 5", 0, "");
}

#[test]
fn an_action_holds_the_chain_it_goes_to() {
    let mut host = machine(Kernel::V6_12);
    let m = &mut host;
    let filter = "tc filter add dev d0 parent 1: protocol all";
    check(m, "tc qdisc add dev d0 root handle 1: prio", 0, "");
    check(m, &format!("{filter} pref 1 handle 1 matchall action goto chain 5"), 0, "");
    // Nobody sees it, nobody can delete it.
    check(m, "tc chain show dev d0 parent 1:", 0, "chain chain 0 \n");
    assert_eq!(run(m, "tc chain del dev d0 parent 1: chain 5").0, 2);
    // It is older than what is made after it.
    check(m, &format!("{filter} chain 3 pref 1 handle 1 matchall action pass"), 0, "");
    check(m, &format!("{filter} chain 5 pref 1 handle 1 matchall action pass"), 0, "");
    check(m, "tc chain show dev d0 parent 1:", 0, "chain chain 0 \nchain chain 5 \nchain chain 3 \n");
    check(m, "tc filter del dev d0 parent 1: chain 5 protocol all pref 1", 0, "");
    check(m, "tc filter del dev d0 parent 1: protocol all pref 1", 0, "");
    // With the action it has gone: made again it is the youngest.
    check(m, &format!("{filter} chain 5 pref 1 handle 1 matchall action pass"), 0, "");
    check(m, "tc chain show dev d0 parent 1:", 0, "chain chain 3 \nchain chain 5 \n");
}

#[test]
fn a_device_that_goes_or_is_renamed() {
    let mut host = machine(Kernel::V6_12);
    let m = &mut host;
    check(m, "ip link add ifb0 type ifb", 0, "");
    check(m, "tc actions add action mirred egress redirect dev ifb0", 0, "");
    check(m, "ip link set ifb0 name ifb7", 0, "");
    assert!(run(m, "tc actions ls action mirred").1.contains("to device ifb7)"));
    check(m, "ip link del ifb7", 0, "");
    assert!(run(m, "tc actions ls action mirred").1.contains("to device *)"));
}

#[test]
fn of_2010() {
    let mut host = machine(Kernel::V2_6_35);
    let m = &mut host;
    check(m, "tc qdisc add dev d0 root handle 1: prio", 0, "");
    let police = "police rate 1mbit burst 10k action drop/pass flowid 1:1";
    check(
        m,
        &format!("tc filter add dev d0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.1 {police}"),
        0,
        "",
    );
    let (status, text) = run(m, "tc filter show dev d0 parent 1:");
    assert_eq!(status, 0);
    assert!(
        text.ends_with(
            " police 0x1 rate 1000Kbit burst 10Kb mtu 2Kb action drop overhead 0b \nref 1 bind 1\n\n"
        ),
        "{text}"
    );
    check(m, "tc actions add action drop index 3 action mirred egress redirect dev d0", 0, "");
    let listed =
        "\n\taction order 0: gact action drop\n\t random type none pass val 0\n\t index 3 ref 1 bind 0\n";
    check(m, "tc actions ls action gact", 0, listed);
}
