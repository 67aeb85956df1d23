//! Any words as iptables, ip and sysctl commands: no panic, and a refused iptables command changes no table.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::Host;
use penstock_model::{Kernel, Time};

fuzz_target!(|text: &str| {
    let mut host = Host::new("fuzz", Kernel::V6_12, 1);
    host.add_device("eth0");
    // One command a line: what the shell would split is several, each applied or refused for itself.
    for line in text.lines().take(40).filter(|l| !l.contains([';', '&', '|'])) {
        let before = host.exec("iptables -t mangle -S", Time::ZERO).stdout;
        let out = host.exec(&format!("iptables -t mangle {line}"), Time::ZERO);
        if out.status != 0 {
            assert_eq!(before, host.exec("iptables -t mangle -S", Time::ZERO).stdout, "half applied: {line}");
        }
        host.exec(&format!("ip {line}"), Time::ZERO);
        host.exec(&format!("sysctl {line}"), Time::ZERO);
    }
});
