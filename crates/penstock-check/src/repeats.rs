//! Commands of files that carry them out again: units of systemd, plays of Ansible, crontabs.

use crate::finding::{Finding, Level};
use crate::source::{Form, Source};
use crate::{holders, of_text};
use penstock_host::Host;
use penstock_model::Kernel;
use penstock_shell::Script;

/// Says of what cannot be made twice how such a file comes to make it twice, and finds what a crontab adds again and again (PS347).
pub(crate) fn judge(script: &Script, findings: &mut Vec<Finding>) {
    let lines: Vec<&str> = script.text.lines().collect();
    if holders::is_unit(&script.name, &script.text) {
        for f in findings.iter_mut().filter(|f| f.code == "PS250") {
            let place = f.message.split(' ').nth(3).unwrap_or("root").to_owned();
            let dev = f.message.split(' ').nth(6).unwrap_or("DEV").to_owned();
            f.severity = Level::Warning;
            f.reason = format!(
                "`systemctl restart` starts the unit a second time, with nothing stopped: {place} is taken, and the start fails. Error: Exclusivity flag on, cannot modify."
            );
            f.fix = format!("ExecStop=-/sbin/tc qdisc del dev {dev} {place}");
        }
    } else if is_play(&lines) {
        findings.extend(unknown_keys(script, &lines));
        for f in findings.iter_mut().filter(|f| f.code == "PS250" && !is_guarded(&lines, f.line)) {
            f.severity = Level::Warning;
            f.reason = "When the play runs again the task fails: Error: Exclusivity flag on, cannot modify."
                .to_owned();
            let line = lines.get(f.line as usize - 1).map_or("", |l| l.trim());
            f.fix = line.replacen("qdisc add", "qdisc replace", 1);
        }
    } else if is_yaml(&script.name) {
        // Commands that no play carries out are a list like others.
        let texts = holders::scripts(&script.name, &script.text).unwrap_or_default();
        let installed = texts.iter().any(|t| Source::new(t).form != Form::List);
        findings.retain(|f| installed || f.code != "PS250");
    } else if holders::is_crontab(&script.name, &script.text) {
        // What others have set up is there when the clock strikes.
        findings.retain(|f| !(f.code == "PS002" && f.message.contains("arent")));
        let said: Vec<Finding> = by_clock(&lines)
            .into_iter()
            .filter_map(|(line, column, words, reason)| {
                let fix = fixed(&words);
                let message = format!("`{words} …` is carried out again each time");
                of_text(script, "PS347", (line, column, 0), (message, reason.to_owned(), fix), Vec::new())
            })
            .collect();
        findings.retain(|f| f.code != "PS250" || said.iter().all(|s| s.line != f.line));
        findings.extend(said);
    }
}

/// What to write in the place of the first words of a command.
fn fixed(words: &str) -> String {
    match words {
        "tc filter add" => "tc filter replace … handle …".to_owned(),
        _ if words.starts_with("tc ") || words.starts_with("ip ") => words.replace(" add", " replace"),
        _ => format!("{} … || {words} …", words.replace("-A", "-C").replace("-I", "-C")),
    }
}

/// Keys of `/proc/sys` that a task of Ansible's module `sysctl` sets and that are a slip away from one that there is (PS014).
fn unknown_keys(script: &Script, lines: &[&str]) -> Vec<Finding> {
    let of_module = |l: &str| {
        let word = l.trim_start().trim_start_matches("- ");
        word.starts_with("sysctl:") || word.starts_with("ansible.posix.sysctl:")
    };
    if !lines.iter().any(|l| of_module(l)) {
        return Vec::new();
    }
    let host = Host::new("h", Kernel::default(), 1);
    let mut out = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|l| of_module(l.1)) {
        let named = |l: &str| l.trim_start().starts_with("name: ") || l.contains(" name=");
        let here = (at..lines.len().min(at + 6)).find(|n| named(lines[*n]) && lines[*n].contains("net."));
        let Some(number) = here else { continue };
        let line = lines[number];
        let place = line.find("net.").unwrap_or(0);
        let end = line[place..].find(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
        let key = &line[place..end.map_or(line.len(), |e| place + e)];
        if key.contains(['{', '$']) || host.setting(key).is_some() {
            continue;
        }
        let Some(meant) = crate::rules::setting_meant(&host, key) else { continue };
        let column = line[..place].chars().count() as u32 + 1;
        let said =
            (format!("{key}: no such key of /proc/sys"), "There is no such setting.".to_owned(), meant);
        let place = (number as u32 + 1, column, key.chars().count() as u32);
        out.extend(of_text(script, "PS014", place, said, Vec::new()));
    }
    out
}

fn is_yaml(name: &str) -> bool {
    [".yml", ".yaml"].iter().any(|ending| name.to_lowercase().ends_with(ending))
}

/// Whether it is a play or a list of tasks of Ansible.
fn is_play(lines: &[&str]) -> bool {
    const MODULES: [&str; 4] = ["command:", "shell:", "ansible.builtin.command:", "ansible.builtin.shell:"];
    let task = |l: &&str| {
        let word = l.trim_start().trim_start_matches("- ");
        MODULES.iter().any(|m| word.starts_with(m))
    };
    let of_others =
        |l: &&str| l.starts_with("services:") || l.starts_with("apiVersion:") || l.starts_with("jobs:");
    lines.iter().any(task) && !lines.iter().any(of_others)
}

/// Whether a task says what is to be done when its command fails, or when it is left out.
fn is_guarded(lines: &[&str], line: u32) -> bool {
    let at = (line as usize).saturating_sub(1).min(lines.len().saturating_sub(1));
    let begins = |l: &str| l.trim_start().starts_with("- name:");
    let from = (0..=at).rev().find(|n| begins(lines[*n])).unwrap_or(0);
    let to = (at + 1..lines.len()).find(|n| begins(lines[*n])).unwrap_or(lines.len());
    let keys = ["failed_when:", "ignore_errors:", "creates:", "when:"];
    lines[from..to].iter().any(|l| keys.iter().any(|k| l.trim_start().starts_with(k)))
}

/// Commands of a crontab that add without looking: line, column, their first words, and what comes of it.
fn by_clock(lines: &[&str]) -> Vec<(u32, u32, String, &'static str)> {
    // What another line takes away is there once a day.
    let takes = |words: &[&str]| {
        lines.iter().filter(|l| !l.trim_start().starts_with('#')).any(|l| {
            words.iter().all(|w| l.split_whitespace().any(|x| x == *w))
                && l.split_whitespace().any(|w| matches!(w, "del" | "delete" | "flush" | "-D" | "-F"))
        })
    };
    let mut out = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        if text.starts_with('#') || text.starts_with("@reboot") || text.contains("||") || text.contains("&&")
        {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let base = |w: &str| w.rsplit('/').next().unwrap_or(w).to_owned();
        let found = words.iter().enumerate().find_map(|(at, w)| {
            let next = |n: usize| words.get(at + n).copied().unwrap_or("");
            match base(w).as_str() {
                "tc" if next(2) == "add" => match next(1) {
                    "filter" if words.contains(&"handle") => None,
                    "filter" => Some((at, 3, "Filters add up: each time there is one more of the same.")),
                    "qdisc" | "class" => Some((at, 3, "From the second time on it is refused: it is there.")),
                    _ => None,
                },
                "iptables" | "ip6tables" => {
                    let adds =
                        words[at..].iter().any(|w| matches!(*w, "-A" | "-I" | "--append" | "--insert"));
                    let count =
                        words[at..].iter().position(|w| matches!(*w, "-A" | "-I" | "--append" | "--insert"));
                    count
                        .filter(|_| adds)
                        .map(|n| (at, n + 1, "Rules add up: each time there is one more of the same."))
                }
                _ => None,
            }
        });
        let Some((at, count, why)) = found else { continue };
        let object: Vec<&str> = match base(words[at]).as_str() {
            "tc" => vec![words[at + 1]],
            _ => vec![words[at]],
        };
        if takes(&object) {
            continue;
        }
        let column = line.find(words[at]).map_or(0, |n| line[..n].chars().count() as u32 + 1);
        let said =
            std::iter::once(base(words[at])).chain(words[at + 1..at + count].iter().map(|w| (*w).to_owned()));
        out.push((number as u32 + 1, column, said.collect::<Vec<_>>().join(" "), why));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_adds_what_nothing_takes_away() {
        let of = |text: &str| {
            by_clock(&text.lines().collect::<Vec<_>>()).into_iter().map(|f| f.0).collect::<Vec<_>>()
        };
        assert_eq!(of("*/5 * * * * tc filter add dev a parent 1: u32 match u32 0 0 flowid 1:1\n"), [1]);
        assert_eq!(of("0 1 * * * root /sbin/iptables -t mangle -A FORWARD -j ACCEPT\n"), [1]);
        assert!(of("@reboot root tc qdisc add dev a root fq\n").is_empty());
        assert!(of("0 8 * * * tc qdisc add dev a root fq\n0 9 * * * tc qdisc del dev a root\n").is_empty());
        assert!(of("0 8 * * * iptables -C INPUT -j DROP || iptables -A INPUT -j DROP\n").is_empty());
    }

    #[test]
    fn a_task_may_say_that_it_can_fail() {
        let text = "- hosts: a\n  tasks:\n    - name: x\n      command: tc qdisc add dev a root fq\n      failed_when: false\n    - name: y\n      command: tc qdisc add dev b root fq\n";
        let lines: Vec<&str> = text.lines().collect();
        assert!(is_play(&lines));
        assert!(is_guarded(&lines, 4) && !is_guarded(&lines, 7));
    }
}
