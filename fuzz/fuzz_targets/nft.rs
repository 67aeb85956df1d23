//! Any text as a file of nft's: no panic, a refused file changes nothing, and what is listed can be read back.
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
    let words: Vec<String> = ["nft", "-f", "-"].map(str::to_owned).to_vec();
    let mut host = Host::new("fuzz", Kernel::V6_12, 1);
    host.add_device("eth0");
    let before = host.exec("nft list ruleset", Time::ZERO).stdout;
    let out = host.command(&words, &mut Input(text), Time::ZERO);
    let after = host.exec("nft list ruleset", Time::ZERO).stdout;
    if out.status != 0 {
        assert_eq!(before, after, "half applied");
        return;
    }
    let mut again = Host::new("fuzz", Kernel::V6_12, 1);
    again.add_device("eth0");
    let out = again.command(&words, &mut Input(&after), Time::ZERO);
    assert_eq!(out.stderr, "", "{after}");
    assert_eq!(after, again.exec("nft list ruleset", Time::ZERO).stdout);
});
