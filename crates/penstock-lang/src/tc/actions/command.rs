//! `tc actions`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/m_action.c` `do_action`, `tc_action_gd`, `tc_act_list_or_flush`.

use super::{bad, find, list, silent, usage};
use crate::show::Form;
use crate::tc::args::{Args, matches};
use crate::tc::{Command, Failure, num};
use penstock_model::Options;
use penstock_model::rtnetlink::{ActionDump, ActionRequest, ActionVerb};

const USAGE: &str = "\
usage: tc actions <ACTSPECOP>*
ACTSPECOP := { add | change | replace } <ACTSPEC>* | { get | delete } <ACTISPEC>* |
             { ls | list | flush } action <ACTNAME>
ACTSPEC := action <ACTNAME> <ACTPARAMS> [index N] [hw_stats { immediate | delayed | disabled }]
           [ skip_sw | skip_hw ]
ACTISPEC := action <ACTNAME> index N
";

/// Several commands may stand on one line; the last one is answered, those before it are said first.
pub fn command(args: &mut Args, form: &Form) -> Result<Option<Command>, Failure> {
    let mut done: Option<Command> = None;
    while args.left() > 0 {
        match one(args, form) {
            Ok(command) => {
                let last = matches!(command, Command::ShowActions { .. })
                    || matches!(&command, Command::Action { req, .. } if req.verb == ActionVerb::Flush);
                args.said.extend(done.replace(command));
                if last {
                    break;
                }
            }
            Err(failure) if done.is_none() => return Err(failure),
            // What stands before has been carried out by then.
            Err(failure) => {
                args.said.extend(done.take());
                return Ok(Some(Command::Fail(failure)));
            }
        }
    }
    Ok(done)
}

fn one(args: &mut Args, form: &Form) -> Result<Command, Failure> {
    let word = args.peek_text().unwrap_or("").to_owned();
    let is = |full: &str| matches(&word, full);
    let request =
        |verb, actions| Command::Action { req: ActionRequest { verb, actions }, form: form.clone() };
    if is("add") || is("change") || is("replace") {
        args.next_word();
        let verb = if is("add") { ActionVerb::Add } else { ActionVerb::Replace };
        let actions = list::parse_action(args).map_err(|f| fail255(f.then("Illegal \"action\"")))?;
        Ok(request(verb, actions))
    } else if is("delete") {
        Ok(request(ActionVerb::Del, named(args)?))
    } else if is("get") {
        Ok(request(ActionVerb::Get, named(args)?))
    } else if ["list", "show", "lst", "flush"].into_iter().any(is) {
        if args.left() <= 2 {
            return Err(usage(args, USAGE));
        }
        let kind = kind_word(args);
        if is("flush") && !["list", "show", "lst"].into_iter().any(is) {
            return Ok(request(ActionVerb::Flush, vec![Options::new().with("kind", kind)]));
        }
        let mut since_ms = 0;
        if !args.old() && args.peek_text() == Some("since") {
            args.next_word();
            let v = args.value()?;
            since_ms = num::u32(&v.text, 0)
                .ok_or_else(|| args.invarg("dump time \"since\" is invalid", &v.text, "milliseconds"))?;
        }
        Ok(Command::ShowActions { dump: ActionDump { kind, since_ms }, form: form.clone() })
    } else if is("help") {
        Err(usage(args, USAGE))
    } else {
        let line = format!("Command \"{word}\" is unknown, try \"tc actions help\".");
        Err(fail255(bad(args, line, "commands: add, change, replace, del, get, show, flush")))
    }
}

fn fail255(mut failure: Failure) -> Failure {
    if !failure.aborts {
        failure.exit = 255;
    }
    failure
}

/// The kind behind `ls` or `flush` and one word more. A word that tc knows no kind by is left to the kernel.
fn kind_word(args: &mut Args) -> String {
    args.next_word();
    args.next_word();
    args.next_word().map_or("", |w| w.text.as_str()).chars().take(15).collect()
}

/// `tc_action_gd`: kinds with indices.
fn named(args: &mut Args) -> Result<Vec<Options>, Failure> {
    args.next_word();
    args.next_word();
    let mut list = Vec::new();
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "action" => continue,
            "help" => return Err(fail255(silent(args))),
            _ => {}
        }
        let text: String = word.text.chars().take(15).collect();
        let kind = find(&text, args.old()).map_or("gact", |k| k.id);
        let no_index = |args: &Args| {
            fail255(bad(args, format!("Error: no index specified action: {kind}"), "say index N"))
        };
        if !args.peek_text().is_some_and(|w| matches(w, "index")) {
            return Err(no_index(args));
        }
        args.next_word();
        let v = args.value()?;
        let index = num::u32(&v.text, 10)
            .ok_or_else(|| fail255(bad(args, "Illegal \"index\"", "a number, e.g. index 10")))?;
        let mut one = Options::new().with("kind", kind);
        if index > 0 || args.old() {
            one = one.with("index", index);
        }
        list.push(one);
    }
    Ok(list)
}
