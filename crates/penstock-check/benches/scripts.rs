//! What reading a long script costs: `check` of some 10,000 lines, one packet explained, and the partition of 10,000 filters.
//!
//! A class with its queue and its filter is three lines (four where a rule marks); `lines` names what leads to the class.

use penstock_check::explain::{Explainer, Probe, partition};
use penstock_check::{Facts, Settings, check, facts};
use penstock_shell::Script;

fn main() {
    divan::main();
}

/// A script of a form, of about so many lines.
fn script(form: &str, lines: usize) -> Script {
    let mut text = "tc qdisc add dev eth0 root handle 1: htb default 2\n\
                    tc class add dev eth0 parent 1: classid 1:1 htb rate 1000mbit ceil 1000mbit\n\
                    tc class add dev eth0 parent 1:1 classid 1:2 htb rate 1mbit ceil 1000mbit\n"
        .to_owned();
    if form == "partition" {
        for n in 0..lines {
            let (high, low) = (n / 250, n % 250);
            text += &format!(
                "tc filter add dev eth0 parent 1: protocol ip prio {} u32 match ip dst 10.0.{high}.{low}/32 flowid 1:2\n",
                n / 4000 + 1
            );
        }
        return Script { text, name: "bench.sh".to_owned(), ..Script::default() };
    }
    let filter = "tc filter add dev eth0 parent 1: protocol ip prio 1";
    for n in 0..lines / if form == "mark" { 4 } else { 3 } {
        let (id, high, low) = (n + 16, n / 250, n % 250);
        text += &format!("tc class add dev eth0 parent 1:1 classid 1:{id:x} htb rate 100kbit ceil 10mbit\n");
        text += &format!("tc qdisc add dev eth0 parent 1:{id:x} handle {id:x}: sfq perturb 10\n");
        text += &match form {
            "mark" => format!(
                "iptables -t mangle -A POSTROUTING -d 10.0.{high}.{low} -j MARK --set-mark {id}\n{filter} handle {id} fw flowid 1:{id:x}\n"
            ),
            "flower" => format!(
                "{filter} flower dst_ip 10.0.{high}.{low} ip_proto tcp dst_port {id} classid 1:{id:x}\n"
            ),
            _ => format!("{filter} u32 match ip dst 10.0.{high}.{low} flowid 1:{id:x}\n"),
        };
    }
    Script { text, name: "bench.sh".to_owned(), ..Script::default() }
}

fn read(form: &str, lines: usize) -> Facts {
    facts(&script(form, lines), &Settings::default())
}

/// A script of 10,000 lines without a finding.
#[divan::bench(args = ["u32", "flower", "mark"], sample_count = 5, sample_size = 1)]
fn check_10_000_lines(bencher: divan::Bencher<'_, '_>, form: &str) {
    let script = script(form, 10_000);
    bencher.bench_local(|| assert!(check(&script, &Settings::default()).is_empty()));
}

/// One packet, the script being loaded: it fits the last of the filters.
#[divan::bench(args = ["u32 300", "u32 10000", "flower 10000", "mark 10000"])]
fn explain_one_packet(bencher: divan::Bencher<'_, '_>, size: &str) {
    let (form, lines) = size.split_once(' ').expect("a form and a number");
    let lines: usize = lines.parse().expect("a number");
    let facts = read(form, lines);
    let last = lines / if form == "mark" { 4 } else { 3 } - 1;
    let packet =
        format!("tcp 192.0.2.1:40000 > 10.0.{}.{}:{} len 1500 in eth1", last / 250, last % 250, last + 16);
    let probe = Probe::parse(&packet).expect("a packet");
    let explainer = Explainer::new(&facts, "eth0").expect("a qdisc");
    bencher.bench_local(|| assert!(explainer.explain(&probe).sorted.class.is_some()));
}

/// What 10,000 filters leave to each class.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn partition_10_000_filters(bencher: divan::Bencher<'_, '_>) {
    let facts = read("partition", 10_000);
    bencher.bench_local(|| assert!(partition(&facts, "eth0").expect("a qdisc").parts.len() > 1));
}
