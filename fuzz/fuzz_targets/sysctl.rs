//! Any words as `sysctl`, `cat` and `echo >` of settings: no panic, and what was set reads the same twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::Host;
use penstock_model::{Kernel, Time};

fuzz_target!(|text: &str| {
    let mut host = Host::new("fuzz", Kernel::V6_12, 1);
    host.add_device("eth0");
    for line in text.lines().take(40).filter(|l| !l.contains([';', '&', '|', '>', '<'])) {
        host.exec(&format!("sysctl {line}"), Time::ZERO);
        host.exec(&format!("cat /proc/sys/{line}"), Time::ZERO);
        host.exec(&format!("cat /sys/class/net/{line}"), Time::ZERO);
        if let Some((value, path)) = line.split_once(' ') {
            host.exec(&format!("echo {value} > /proc/sys/{path}"), Time::ZERO);
        }
        let all = host.exec("sysctl -a", Time::ZERO).stdout;
        assert_eq!(all, host.exec("sysctl -a", Time::ZERO).stdout, "{line}");
    }
});
