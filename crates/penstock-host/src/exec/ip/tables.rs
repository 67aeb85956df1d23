//! `/etc/iproute2/rt_tables`: names of routing tables, where whoever lends files has that one.
//!
//! Follows: iproute2 6.1.0 `lib/rt_names.c` `rtnl_tab_initialize`.

use crate::Files;
use penstock_lang::token::Line;
use std::borrow::Cow;

const FILE: &str = "/etc/iproute2/rt_tables";

/// Numbers and names, in the file's order, without those that everybody knows.
#[derive(Default)]
pub(super) struct Tables(Vec<(String, String)>);

impl Tables {
    /// Those of the file, for a command about routes or rules.
    pub(super) fn of(line: &Line, files: &mut dyn Files) -> Tables {
        let about = |w: &str| w.starts_with('r') && ("route".starts_with(w) || "rule".starts_with(w));
        if !line.words.iter().skip(1).any(|w| about(&w.text)) {
            return Tables::default();
        }
        let text = files.read(FILE).unwrap_or_default();
        let entry = |line: &str| {
            let mut words = line.split('#').next()?.split_whitespace();
            let (number, name) = (words.next()?, words.next()?);
            let number = match number.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            (!matches!(number, 0 | 253..=255)).then(|| (number.to_string(), name.to_owned()))
        };
        Tables(text.lines().filter_map(entry).collect())
    }

    fn is_before(word: &str) -> bool {
        matches!(word, "table" | "lookup")
    }

    /// The command with numbers for names.
    pub(super) fn numbered<'a>(&self, line: &'a Line) -> Cow<'a, Line> {
        let mut numbered = Cow::Borrowed(line);
        for at in 1..line.words.len() {
            let named = self.0.iter().rev().find(|(_, name)| *name == line.words[at].text);
            if let (true, Some((number, _))) = (Tables::is_before(&line.words[at - 1].text), named) {
                numbered.to_mut().words[at].text.clone_from(number);
            }
        }
        numbered
    }

    /// What is shown, with names for numbers.
    pub(super) fn named(&self, shown: String) -> String {
        if self.0.is_empty() {
            return shown;
        }
        let line = |line: &str| {
            let mut words: Vec<&str> = line.split(' ').collect();
            for at in 1..words.len() {
                let named = self.0.iter().rev().find(|(number, _)| number == words[at]);
                if let (true, Some((_, name))) = (Tables::is_before(words[at - 1]), named) {
                    words[at] = name;
                }
            }
            words.join(" ")
        };
        shown.split('\n').map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use crate::{FileError, Files, Host};
    use penstock_model::{Kernel, Time};

    struct One;

    impl Files for One {
        fn read(&mut self, path: &str) -> Result<String, FileError> {
            match path {
                "/etc/iproute2/rt_tables" => {
                    Ok("255\tlocal\n# a comment\n200 isp2 # mine\n0x12c three\n".to_owned())
                }
                _ => Err(FileError::NotFound),
            }
        }
    }

    #[test]
    fn tables_by_name() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        host.exec("ip addr add 10.0.0.1/24 dev eth0", Time::ZERO);
        let mut said = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let out = host.command(&words, &mut One, Time::ZERO);
            out.stdout + &out.stderr
        };
        assert_eq!(said("ip route add default via 10.0.0.2 table isp2"), "");
        assert_eq!(said("ip rule add from 10.0.0.1 lookup three prio 300"), "");
        assert_eq!(said("ip route show table isp2"), "default via 10.0.0.2 dev eth0 \n");
        assert!(said("ip rule").contains("300:\tfrom 10.0.0.1 lookup three\n"));
        assert!(said("ip route show table all").starts_with("default via 10.0.0.2 dev eth0 table isp2 \n"));
        assert!(said("ip route show table nobody").contains("table id value is invalid"));
        let numbers = host.exec("ip rule", Time::ZERO).stdout;
        assert!(numbers.contains("300:\tfrom 10.0.0.1 lookup 300\n"));
    }
}
