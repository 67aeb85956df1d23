//! Any text as what `ip`, `tc` or `iptables-save` printed: no panic, and the commands it gives are carried out by a fresh machine.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::Host;
use penstock_machine::import::{Text, import};
use penstock_model::{Kernel, Time};

fuzz_target!(|text: &str| {
    let text = Text { name: "fuzz".to_owned(), text: text.to_owned(), dev: Some("eth0".to_owned()) };
    let Ok(imported) = import(&[text], Kernel::V6_12) else { return };
    let mut host = Host::new("import", Kernel::V6_12, 1);
    host.add_device("eth0");
    host.add_device("eth1");
    for line in imported.commands.iter().filter(|line| !line.contains('\n')) {
        let output = host.exec(line, Time::ZERO);
        assert_eq!(output.status, 0, "{line}: {}", output.stderr);
    }
});
