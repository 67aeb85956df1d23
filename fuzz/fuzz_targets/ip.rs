//! Any words as commands of `ip` and the tools around it: no panic, what is shown is shown twice alike, and what `ip` refuses in one request
//! changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::Host;
use penstock_model::{Kernel, Time};

fuzz_target!(|text: &str| {
    let mut host = Host::new("fuzz", Kernel::V6_12, 1);
    host.add_device("eth0");
    host.add_device("eth1");
    for line in text.lines().take(40).filter(|l| !l.contains([';', '&', '|', '>', '<'])) {
        let shows = ["ip -d addr show", "ip route show table all", "ip rule show", "ip neigh show"];
        let state = |host: &mut Host| shows.map(|show| host.exec(show, Time::ZERO).stdout);
        let before = state(&mut host);
        let refused = host.exec(&format!("ip {line}"), Time::ZERO).status != 0;
        // A link's settings and the lines of a batch are carried out one after the other.
        let stepwise = ["set", "change", "-b", "exec", "flush"].iter().any(|word| line.contains(word));
        let after = state(&mut host);
        assert_eq!(after, state(&mut host), "shown otherwise the second time: {line}");
        if refused && !stepwise {
            assert_eq!(before, after, "half applied: {line}");
        }
        for tool in ["ifconfig", "route", "arp", "ethtool", "brctl", "modprobe", "bridge"] {
            host.exec(&format!("{tool} {line}"), Time::ZERO);
        }
    }
});
