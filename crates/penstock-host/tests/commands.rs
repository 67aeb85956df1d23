//! The virtual lab's own command files, run as they stand on a machine with eth0 and eth1.

use penstock_host::{Host, Output};
use penstock_model::{Kernel, Time};

fn router(kernel: Kernel) -> Host {
    let mut host = Host::new("u4", kernel, 1);
    host.add_device("eth0");
    host.add_device("eth1");
    host
}

macro_rules! script {
    ($name:literal) => {
        ($name, include_str!(concat!("../../penstock-study/studies/virtual-lab/commands/", $name)))
    };
}

fn run(host: &mut Host, (_, text): (&str, &str)) -> Output {
    host.exec(text, Time::ZERO)
}

#[track_caller]
fn clean(host: &mut Host, script: (&str, &str)) -> String {
    let out = run(host, script);
    let said: Vec<String> = out.diagnostics.iter().map(ToString::to_string).collect();
    assert!(said.is_empty() && out.status == 0, "{}: {said:#?}", host.kernel());
    out.stdout
}

#[test]
fn every_file_runs_from_a_fresh_machine() {
    let fresh = [
        script!("06.1-htb-10mbit.sh"),
        script!("06.2-htb-pfifo.sh"),
        script!("07.0-htb-10mbit.sh"),
        script!("07.1-htb-pfifo.sh"),
        script!("07.3-tbf-220kbit.sh"),
        script!("07.4-prio.sh"),
        script!("08.1-user-limits.sh"),
        script!("08.2-user-ceilings.sh"),
        script!("08.2-user-limits.sh"),
        script!("09.1-application-limits.sh"),
        script!("09.2-application-limits.sh"),
        script!("10.1-marks.sh"),
        script!("10.2-marks.sh"),
        script!("10.2-priority-5mbit.sh"),
    ];
    for kernel in Kernel::ALL {
        for script in fresh {
            assert_eq!(clean(&mut router(kernel), script), "", "{}", script.0);
        }
    }
}

#[test]
fn files_that_begin_with_a_deletion_follow_another() {
    let after = [
        script!("06.3-htb-sfq.sh"),
        script!("06.4-htb-sfq-perturb.sh"),
        script!("07.2-htb-sfq-perturb.sh"),
        script!("07.3-htb-800kbit.sh"),
    ];
    for kernel in Kernel::ALL {
        let mut host = router(kernel);
        clean(&mut host, script!("06.2-htb-pfifo.sh"));
        for script in after {
            clean(&mut host, script);
        }
    }
}

#[test]
fn forwarding_is_turned_on_and_said() {
    for kernel in Kernel::ALL {
        let mut host = router(kernel);
        assert_eq!(clean(&mut host, script!("04-forwarding.sh")), "net.ipv4.ip_forward = 1\n");
        assert!(host.forwards());
    }
}

#[test]
fn the_lost_space_is_found_with_its_line() {
    let mut host = router(Kernel::V2_6_35);
    let out = run(&mut host, script!("07.4-prio.as-printed.sh"));
    let faults = out.diagnostics;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].line, 5);
    assert!(faults[0].message.contains("tbfrate"), "{}", faults[0]);
    // The other lines have run.
    let shown = host.exec("tc qdisc show dev eth0", Time::ZERO).stdout;
    assert_eq!(shown.lines().filter(|l| l.starts_with("qdisc")).count(), 3, "{shown}");
}

#[test]
fn what_the_documents_show_before_anything() {
    let mut host = router(Kernel::V2_6_35);
    let want = "qdisc pfifo_fast 0: root refcnt 2 bands 3 priomap  1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0 \n";
    let shown = host.exec("sudo tc -s qdisc ls dev eth0", Time::ZERO);
    assert_eq!(shown.stdout, want);
}

#[test]
fn marks_and_filters_are_there() {
    let mut host = router(Kernel::V2_6_35);
    clean(&mut host, script!("10.1-marks.sh"));
    let listed = host.exec("iptables -t mangle -L INSHAPER -n -v", Time::ZERO).stdout;
    assert_eq!(listed.lines().count(), 5, "{listed}");
    assert!(listed.contains("tcp dpt:5001 MARK xset 0xa/0xffffffff"), "{listed}");
    let filters = host.exec("tc filter show dev eth0", Time::ZERO).stdout;
    for handle in ["handle 0xa", "handle 0x14", "handle 0x1e"] {
        assert!(filters.contains(handle), "{filters}");
    }
}

/// `net.core.txrehash` is a byte that is 0 or 1; the kernel of 2010 has none.
#[test]
fn txrehash_is_on_or_off() {
    let mut host = router(Kernel::V6_12);
    let mut said = |line: &str| {
        let out = host.exec(line, Time::ZERO);
        (out.status, format!("{}{}", out.stdout, out.stderr))
    };
    assert_eq!(said("sysctl net.core.txrehash"), (0, "net.core.txrehash = 1\n".to_owned()));
    let refused = "sysctl: setting key \"net.core.txrehash\": Invalid argument\n";
    for value in ["2", "-1", "yes", "'0 1'"] {
        assert_eq!(said(&format!("sysctl -w net.core.txrehash={value}")), (1, refused.to_owned()), "{value}");
    }
    assert_eq!(said("sysctl -w net.core.txrehash=0"), (0, "net.core.txrehash = 0\n".to_owned()));
    assert_eq!(said("cat /proc/sys/net/core/txrehash"), (0, "0\n".to_owned()));
    let out = router(Kernel::V2_6_35).exec("sysctl net.core.txrehash", Time::ZERO);
    assert!(out.status != 0 && out.stderr.contains("No such file or directory"), "{}", out.stderr);
}
