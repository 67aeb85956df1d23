//! Any text as a saved file of iptables' and ip6tables': no panic, and what is saved can be restored.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::{FileError, Files, Host};
use penstock_lang::iptables::restore::{Line, RestoreOptions, read_line};
use penstock_lang::iptables::{Action, Family, Rule, Table};
use penstock_model::{Kernel, Time};

struct Input<'a>(&'a str);

impl Files for Input<'_> {
    fn read(&mut self, _: &str) -> Result<String, FileError> {
        Ok(self.0.to_owned())
    }
}

/// Whether a rule names an interface that no `-save` of the real program's can be read back with: it writes them bare.
fn unreadable_name(text: &str, family: Family) -> bool {
    let legal = |name: &str| {
        name.bytes().all(|b| b.is_ascii_graphic() && !b"\"'\\".contains(&b)) && !name.starts_with('-')
    };
    let options = RestoreOptions::default();
    text.lines().any(|line| {
        Table::ALL.into_iter().any(|table| {
            let Ok(Line::Rule(command)) = read_line(line, 1, Some(table), &options, (family, Kernel::V6_12))
            else {
                return false;
            };
            let rules: &[Rule] = match &command.action {
                Action::Append(_, rules, _) | Action::Insert(_, _, rules, _) => rules,
                Action::Replace(_, _, rule, _) => std::slice::from_ref(rule),
                _ => &[],
            };
            rules.iter().any(|r| [&r.input, &r.output].into_iter().flatten().any(|i| !legal(&i.name)))
        })
    })
}

fuzz_target!(|text: &str| {
    for family in [Family::Ip, Family::Ip6] {
        if unreadable_name(text, family) {
            continue;
        }
        let tool = family.program();
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
