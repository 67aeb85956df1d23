//! The commands of a specification.

use super::clock::Machine;
use super::{DEV, Ground, Spec, shown};
use penstock_lang::tc::{self, Command, Env, Failure, Link};
use penstock_lang::token::Word;
use penstock_model::rtnetlink::{ClassDump, ClassRequest, FilterRequest, QdiscRequest, Verb};
use penstock_model::{Diagnostic, Handle, KernelError, Value};
use penstock_sched::Device;
use std::collections::BTreeSet;

/// Longest Ethernet MTU a veth takes.
const MTU_MAX: u32 = 65_535;

/// Executes `setup`.
///
/// # Errors
/// The first command that is refused, in its program's words.
pub fn run(machine: &mut Machine, spec: &Spec) -> Result<(), Diagnostic> {
    for command in &spec.setup {
        line(machine, &named(spec, command))?;
    }
    Ok(())
}

/// The command with the device's and the place's names in it.
pub fn named(spec: &Spec, command: &str) -> String {
    let parent = if !spec.release.has_line() { "root" } else { "parent 7fff:1" };
    command.replace("$DEV", DEV).replace("$PARENT", parent)
}

/// Executes one command line; without a program's name it is tc's. Answers what it prints.
pub fn line(machine: &mut Machine, text: &str) -> Result<String, Diagnostic> {
    let words =
        split(text).ok_or_else(|| Diagnostic::error(format!("setup: {text}: no closing quotation")))?;
    let program = match words.first().map(|w| w.text.as_str()) {
        Some("ip") => "ip",
        _ => "tc",
    };
    let stderr = if program == "ip" {
        machine.ip_starts();
        ip(machine, &words[1..]).map(|()| String::new())
    } else {
        tc(machine, &words)
    };
    machine.program_ends();
    stderr.map_err(|f| {
        let named = words.first().is_some_and(|w| w.text == program);
        let shown: Vec<&str> = words[usize::from(named)..].iter().map(|w| w.text.as_str()).collect();
        Diagnostic {
            message: format!("{program} {}: {}", shown.join(" "), f.stderr.trim()),
            help: f.diagnostic.help,
            ..Diagnostic::error("")
        }
    })
}

fn tc(machine: &mut Machine, words: &[Word]) -> Result<String, Failure> {
    let known = |name: &str| matches!(name, DEV | "v1" | "lo").then(Link::default);
    let env = Env { kernel: machine.kernel(), device: &known, objects: &tc::NoObjects };
    let commands = tc::parse_in(words, &env).inspect_err(|refused| {
        // What tc itself refuses it refuses once it has begun, and found the kind where there is one, and the actions before.
        let object = words.iter().map(|w| w.text.as_str()).find(|w| *w != "tc");
        let at = refused.diagnostic.column;
        let read = words.iter().take_while(|w| at == 0 || w.column <= at).count();
        machine
            .program_starts(u32::from(object != Some("chain")) + libraries(&words[..read], machine.ground));
    })?;
    if let [command] = commands.as_slice()
        && let Some(text) = shown::printed(machine, command)
    {
        return Ok(text);
    }
    let libraries = libraries(words, machine.ground);
    let modules = commands.iter().filter(|c| {
        matches!(
            c,
            Command::Qdisc { req: QdiscRequest { kind: Some(_), .. }, .. }
                | Command::Class { req: ClassRequest { kind: Some(_), .. }, .. }
                | Command::Filter { req: FilterRequest { kind: Some(_), .. }, .. }
        )
    });
    machine.program_starts(modules.count() as u32 + libraries);
    let mut said = String::new();
    for command in commands {
        if let Command::Help(text) = &command {
            said += text;
        }
        let dev = match &command {
            Command::Qdisc { dev, .. }
            | Command::Class { dev, .. }
            | Command::Filter { dev, .. }
            | Command::Chain { dev, .. } => on(dev)?,
            _ => continue,
        };
        let before = token_buckets(machine);
        if makes(&command) {
            machine.makes();
        }
        //= linux v7.2 sch_dualpi2.c dualpi2_init: it reads the clock for its timer outside of any lock.
        machine.kernel_looks(u32::from(makes_dualpi2(&command)));
        let curves = u32::from(changes_curves(machine, &command));
        let result = machine.with_tree(|tree, cx| match (&command, dev) {
            (_, None) => Err(KernelError::errno(KernelError::ENODEV)),
            (Command::Qdisc { req, .. }, _) => tree.qdisc(req, cx),
            (Command::Class { req, .. }, _) => tree.class(req, cx),
            (Command::Filter { req, .. }, _) => tree.filter(&with_ifindex(req), cx),
            (Command::Chain { req, .. }, _) => tree.chain(&with_ifindex(req)),
            _ => Ok(()),
        });
        machine.command_over(result.is_err());
        machine.run_scheduled();
        result.map_err(|error| {
            let failure = tc::refused(&command, &error);
            Failure { stderr: format!("{said}{}", failure.stderr), ..failure }
        })?;
        //= linux v6.12 sch_tbf.c tbf_init, tbf_reset: who makes one and who throws one away read the clock outside of any lock.
        let after = token_buckets(machine);
        let made = after.iter().filter(|h| !before.contains(h)).count();
        let gone = before.iter().filter(|h| !after.contains(h)).count();
        machine.kernel_looks((made + gone) as u32 + curves);
    }
    Ok(String::new())
}

/// The handles of the device's `tbf`.
fn token_buckets(machine: &mut Machine) -> Vec<Handle> {
    machine.with_tree(|tree, cx| {
        tree.dump_qdiscs(cx.now).iter().filter(|q| q.kind == "tbf").map(|q| q.handle).collect()
    })
}

/// Whether a qdisc, a class or a filter is to be made, so far as the command tells.
fn makes(command: &Command) -> bool {
    let verb = match command {
        Command::Qdisc { req, .. } => req.verb,
        Command::Class { req, .. } => req.verb,
        Command::Filter { req, .. } => req.verb,
        _ => return false,
    };
    matches!(verb, Verb::Add | Verb::Create)
}

/// Whether a qdisc with a timer of its own is to be made, so far as the command tells.
fn makes_dualpi2(command: &Command) -> bool {
    let Command::Qdisc { req, .. } = command else { return false };
    req.kind.as_deref() == Some("dualpi2") && matches!(req.verb, Verb::Add | Verb::Create)
}

/// Whether a class of hfsc that is there is to be changed.
//= linux v6.12 sch_hfsc.c hfsc_change_class: the clock is read outside of any lock.
fn changes_curves(machine: &mut Machine, command: &Command) -> bool {
    let Command::Class { req, .. } = command else { return false };
    let is_it = |c: &ClassDump| c.kind == "hfsc" && c.classid == req.classid;
    req.verb != Verb::Del && machine.with_tree(|tree, cx| tree.dump_classes(cx.now).iter().any(is_it))
}

/// How often tc looks in vain for the library of an action, of a header's fields for `pedit` and of an extended match. The last two it looks
/// for wherever the loader does: many folders the first time, then those that there are.
fn libraries(words: &[Word], ground: &Ground) -> u32 {
    const CONTROLS: [&str; 9] =
        ["ok", "pass", "drop", "shot", "continue", "pipe", "reclassify", "trap", "goto"];
    let (mut actions, mut edits, mut anywhere) = (BTreeSet::new(), 0, BTreeSet::new());
    for pair in words.windows(2) {
        let (word, next) = (pair[0].text.as_str(), pair[1].text.as_str());
        match word {
            "action" if CONTROLS.contains(&next) || next == "jump" => drop(actions.insert("gact")),
            // Its own it forgets each time.
            "action" if next == "pedit" => edits += 1,
            "action" => drop(actions.insert(next)),
            "munge" if next != "offset" => drop(anywhere.insert(next)),
            _ => {}
        }
    }
    for word in words.iter().filter(|w| w.text.contains('(')) {
        for before in word.text.split('(') {
            let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            if matches!(name, "cmp" | "meta" | "nbyte" | "u32") {
                anywhere.insert(name);
            }
        }
    }
    // A filter's matches stand before its actions, an edit's fields behind the action.
    let before = |word: &Word| word.text != "action";
    let matches = words.iter().take_while(|w| before(w)).any(|w| w.text.contains('('));
    let searched = match anywhere.len() as u32 {
        0 => 0,
        n => {
            let alone = if matches || actions.is_empty() && edits == 0 { ground.first_alone } else { 0 };
            ground.first_library + alone + ground.next_library * (n - 1)
        }
    };
    actions.len() as u32 + edits + searched
}

/// The request with the index of the device that `indev` names.
fn with_ifindex(req: &FilterRequest) -> FilterRequest {
    let mut req = req.clone();
    if let Some(options) = &mut req.options
        && let Some(index) =
            options.str("indev").and_then(|name| ["lo", "v1", DEV].iter().position(|d| *d == name))
    {
        options.set("ifindex", Value::U32(index as u32 + 1));
    }
    req
}

/// Only the device under test has qdiscs here.
fn on(dev: &Option<String>) -> Result<Option<&str>, Failure> {
    match dev.as_deref() {
        Some(DEV) | None => Ok(dev.as_deref()),
        Some("v1" | "lo") => {
            let line = format!("\"{}\" is not the device under test", dev.as_deref().unwrap_or_default());
            let diagnostic = Diagnostic::error(line.clone()).help("say $DEV");
            Err(Failure { stderr: line + "\n", exit: 1, aborts: false, diagnostic: Box::new(diagnostic) })
        }
        Some(other) => Err(tc::no_device(other)),
    }
}

/// `ip link set [dev] v0 txqueuelen N | mtu N | up`.
fn ip(machine: &mut Machine, words: &[Word]) -> Result<(), Failure> {
    let texts: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
    let fail = |line: String, help: &str| {
        let diagnostic = Diagnostic::error(line.clone()).help(help);
        Failure { stderr: line + "\n", exit: 255, aborts: false, diagnostic: Box::new(diagnostic) }
    };
    let known = "of ip, a specification may say: ip link set dev $DEV [txqueuelen N] [mtu N] [up]";
    let mut rest = match texts.as_slice() {
        ["link" | "l" | "li", "set" | "s", "dev", name, rest @ ..]
        | ["link" | "l" | "li", "set" | "s", name, rest @ ..] => {
            if *name != DEV {
                return Err(fail(format!("Cannot find device \"{name}\""), known));
            }
            rest
        }
        _ => return Err(fail(format!("\"{}\" is not understood here", texts.join(" ")), known)),
    };
    let mut device: Device = *machine.tree.device();
    while let [word, more @ ..] = rest {
        let number = |what: &str| match more.first().map(|n| (n, n.parse::<u32>())) {
            Some((_, Ok(n))) => Ok(n),
            Some((n, Err(_))) => {
                Err(fail(format!("Error: argument \"{n}\" is wrong: Invalid \"{what}\" value"), known))
            }
            None => Err(fail("Command line is not complete. Try option \"help\"".to_owned(), known)),
        };
        rest = match *word {
            "txqueuelen" | "txqlen" | "qlen" => {
                device.tx_queue_len = number("txqueuelen")?;
                &more[1..]
            }
            "mtu" => {
                device.mtu = number("mtu")?;
                if !(68..=MTU_MAX).contains(&device.mtu) {
                    let which = if device.mtu < 68 {
                        "less than device minimum"
                    } else {
                        "greater than device maximum"
                    };
                    return Err(fail(format!("Error: mtu {which}."), known));
                }
                &more[1..]
            }
            "up" => more,
            "down" => {
                return Err(fail("a device that is down sends nothing: Network is down".to_owned(), known));
            }
            "arp" | "multicast" if more.first().is_some_and(|w| matches!(*w, "on" | "off")) => &more[1..],
            other => {
                return Err(fail(
                    format!("Error: either \"dev\" is duplicate, or \"{other}\" is a garbage."),
                    known,
                ));
            }
        };
    }
    machine.with_tree(|tree, cx| tree.set_device(device, cx));
    Ok(())
}

/// Splits as a POSIX shell does without its substitutions; `None` where a quotation does not end.
fn split(text: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<(String, u32)> = None;
    let mut chars = text.chars().zip(1u32..);
    while let Some((c, column)) = chars.next() {
        if c.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        let (into, _) = word.get_or_insert_with(|| (String::new(), column));
        match c {
            '\'' => loop {
                match chars.next()?.0 {
                    '\'' => break,
                    c => into.push(c),
                }
            },
            '"' => loop {
                match chars.next()?.0 {
                    '"' => break,
                    '\\' => match chars.next()?.0 {
                        c @ ('"' | '\\') => into.push(c),
                        c => into.extend(['\\', c]),
                    },
                    c => into.push(c),
                }
            },
            '\\' => into.push(chars.next()?.0),
            c => into.push(c),
        }
    }
    words.extend(word);
    Some(words.into_iter().map(|(text, column)| Word::new(text, column)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let check = |text: &str, want: &[&str]| {
            let got: Vec<String> = split(text).unwrap().into_iter().map(|w| w.text).collect();
            assert_eq!(got, want, "{text}");
        };
        check(" a  b\tc ", &["a", "b", "c"]);
        check(r#"a 'b c' "d \"e\" \f" g\ h ''"#, &["a", "b c", "d \"e\" \\f", "g h", ""]);
        check("", &[]);
        assert_eq!(split("a 'b"), None);
    }
}
