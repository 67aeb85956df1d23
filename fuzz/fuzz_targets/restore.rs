//! Any text as a saved file of iptables' and ip6tables': no panic, and what is saved can be restored.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::{FileError, Files, Host};
use penstock_model::{Kernel, Time};

struct Input<'a>(&'a str);

impl Files for Input<'_> {
    fn read(&mut self, _: &str) -> Result<String, FileError> {
        Ok(self.0.to_owned())
    }
}

fuzz_target!(|text: &str| {
    for tool in ["iptables", "ip6tables"] {
        let words: Vec<String> = [format!("{tool}-restore"), "-c".to_owned()].to_vec();
        let save = format!("{tool}-save -c");
        let mut host = Host::new("fuzz", Kernel::V6_12, 1);
        host.command(&words, &mut Input(text), Time::ZERO);
        let saved = host.exec(&save, Time::ZERO).stdout;
        let mut again = Host::new("fuzz", Kernel::V6_12, 1);
        let out = again.command(&words, &mut Input(&saved), Time::ZERO);
        assert_eq!(out.stderr, "", "{saved}");
        // Tables are listed newest first; comments tell the time.
        let sorted = |text: &str| {
            let plain: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
            let text = plain.join("\n") + "\n";
            let mut tables: Vec<String> = text.split("COMMIT\n").map(str::to_owned).collect();
            tables.sort();
            tables
        };
        assert_eq!(sorted(&saved), sorted(&again.exec(&save, Time::ZERO).stdout));
    }
});
