//! Any text as a shaping script on a machine with two devices: no panic, and a refused command changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::Host;
use penstock_model::{Kernel, Time};

fuzz_target!(|text: &str| {
    for kernel in Kernel::ALL {
        let mut host = Host::new("fuzz", kernel, 1);
        host.add_device("eth0");
        host.add_device("eth1");
        for line in text.lines().take(40) {
            let before = host.exec("tc -d qdisc show", Time::ZERO).stdout;
            let out = host.exec(line, Time::ZERO);
            // One command: what the shell would split is several, each applied or refused for itself.
            let one = !line.contains([';', '&', '|']) && !line.contains("-b");
            // Linux itself keeps a part of a refused change of these (sch_fq.c fq_change, sch_fq_pie.c, sch_gred.c).
            let one = one && !line.split_whitespace().any(|word| ["fq", "fq_pie", "gred"].contains(&word));
            if out.status != 0 && one && line.split_whitespace().next() == Some("tc") {
                assert_eq!(before, host.exec("tc -d qdisc show", Time::ZERO).stdout, "half applied: {line}");
            }
        }
    }
});
