//! What to do about a command of a setup that failed and that says nothing of it itself.

use crate::experiment::meant;
use penstock_model::Diagnostic;
use penstock_sched::sch;

/// The fault with what to do, where that can be said; `words` are those of the command, where they are known.
pub(super) fn on(fault: Diagnostic, words: &[String]) -> Diagnostic {
    let said = fault.message.as_str();
    let behind = |name: &str| {
        let at = words.iter().position(|w| w == name)?;
        words.get(at + 1).map(String::as_str)
    };
    let has = |word: &str| words.iter().any(|w| w == word);
    let dev = behind("dev").unwrap_or("DEV");
    if said.contains("sysctl: cannot stat") {
        let key = words.iter().find_map(|w| w.split('=').next().filter(|key| key.contains('.')));
        let known: Vec<&str> = fault.help.split(' ').filter(|w| w.contains('.')).collect();
        let near = key.and_then(|key| meant(key, &known)).map(|near| format!("did you mean {near}?"));
        let help = near.unwrap_or_else(|| "penstock sysctl -a lists the settings there are".to_owned());
        return Diagnostic { help, ..fault };
    }
    if !fault.help.is_empty() {
        return fault;
    }
    let help = if said.contains("Specified qdisc kind is unknown") {
        let kinds: Vec<&str> = sch::KINDS.iter().map(|kind| kind.id).collect();
        let wrong = words.iter().skip(2).rev().filter(|w| !kinds.contains(&w.as_str()));
        let near = wrong.filter(|w| w.len() > 2).find_map(|w| meant(w, &kinds));
        match near {
            Some(near) => format!("did you mean {near}?"),
            None => "docs/kinds has a page for each qdisc there is, e.g. fq_codel, htb, tbf, cake".to_owned(),
        }
    } else if said.contains("answers: File exists") || said.contains("Exclusivity flag on") {
        "it is there already: write replace in place of add, or delete it before".to_owned()
    } else if said.contains("answers: No such file or directory") || said.contains("Failed to find") {
        match behind("parent") {
            Some(parent) if has("class") || has("filter") || has("qdisc") => {
                let major = parent.split(':').next().unwrap_or("1");
                format!(
                    "{dev} has no {parent} yet: add it before, e.g. tc qdisc add dev {dev} root handle {major}: htb"
                )
            }
            _ => "what it names is not there yet: add it before".to_owned(),
        }
    } else if said.contains("not started: a script here acts") {
        "leave it out: what a machine has is simulated; --on kernel runs what is installed".to_owned()
    } else if said.contains("unexpected end of file") {
        "something is open: if needs fi, do needs done, a quote its other half".to_owned()
    } else if said.contains("command not found") {
        "the machine's shell has the network's programs and coreutils; --on kernel runs what is installed"
            .to_owned()
    } else {
        "penstock check FILE looks through a script line by line".to_owned()
    };
    Diagnostic { help, ..fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_something_to_do() {
        let check = |said: &str, line: &str, want: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(on(Diagnostic::error(format!("b: {said}")), &words).help, want);
        };
        let unknown = "Error: Specified qdisc kind is unknown.";
        check(unknown, "tc qdisc add dev eth0 root fqcodel", "did you mean fq_codel?");
        check(unknown, "tc qdisc add dev eth0 root handle 1: hbt default 10", "did you mean htb?");
        let none = "RTNETLINK answers: No such file or directory";
        let first = "eth0 has no 1: yet: add it before, e.g. tc qdisc add dev eth0 root handle 1: htb";
        check(none, "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit", first);
        let there = "it is there already: write replace in place of add, or delete it before";
        check("RTNETLINK answers: File exists", "ip addr add 10.0.0.1/24 dev eth0", there);
        check(
            "frobnicate: command not found",
            "",
            "the machine's shell has the network's programs and coreutils; --on kernel runs what is installed",
        );
        let known =
            Diagnostic::error("sysctl: cannot stat /proc/sys/net/ipv4/ip_forwrd: No such file or directory")
                .help("settings here: net.ipv4.ip_forward net.ipv4.tcp_ecn");
        let words: Vec<String> = ["sysctl", "-w", "net.ipv4.ip_forwrd=1"].map(str::to_owned).into();
        assert_eq!(on(known, &words).help, "did you mean net.ipv4.ip_forward?");
        let own = Diagnostic::error("x").help("y");
        assert_eq!(on(own, &[]).help, "y");
    }
}
