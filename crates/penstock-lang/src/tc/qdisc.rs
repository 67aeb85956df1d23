//! `tc qdisc`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/tc_qdisc.c`.

use super::args::{Args, matches};
use super::{Command, Failure, Show, estimator, kinds, num, usage};
use crate::show::Form;
use penstock_model::Handle;
use penstock_model::rtnetlink::{QdiscRequest, Verb};

pub(super) const HANDLE_HELP: &str = "a handle is a hexadecimal number and a colon, e.g. 1:";
pub(super) const CLASSID_HELP: &str = "a classid is two hexadecimal numbers, e.g. 1:10";

/// What `tc` speaks of, and what each command does with it.
pub(super) struct Object {
    pub name: &'static str,
    /// For whoever names another.
    pub commands: &'static str,
    pub usage: &'static str,
    /// Whether there is `link`.
    pub links: bool,
    pub show: fn(Show) -> Command,
    pub modify: fn(&mut Args, Verb) -> Result<Command, Failure>,
    pub list: fn(&mut Args, Form) -> Result<Command, Failure>,
}

/// Reads the command and what follows it; words may be cut short.
pub(super) fn verb(args: &mut Args, form: Form, object: &Object) -> Result<Command, Failure> {
    let Some(word) = args.next_word() else {
        return Ok((object.show)(Show { form, ..Show::default() }));
    };
    let is = |full: &str| matches(&word.text, full);
    if is("add") {
        (object.modify)(args, Verb::Add)
    } else if is("change") {
        (object.modify)(args, Verb::Change)
    } else if is("replace") {
        (object.modify)(args, Verb::Replace)
    } else if object.links && is("link") {
        (object.modify)(args, Verb::Link)
    } else if is("delete") {
        (object.modify)(args, Verb::Del)
    } else if is("list") || is("show") || is("lst") {
        (object.list)(args, form)
    } else if is("help") {
        Ok(Command::Help(object.usage.to_owned()))
    } else {
        let line = format!("Command \"{}\" is unknown, try \"tc {} help\".", word.text, object.name);
        Err(args.fail(line, 255, format!("commands: {}", object.commands)))
    }
}

/// `dev DEV`, which may be said once.
pub(super) fn device(args: &mut Args, dev: &mut Option<String>) -> Result<(), Failure> {
    let v = args.value()?;
    if dev.is_some() {
        return Err(args.duparg("dev", &v.text));
    }
    *dev = Some(device_name(&v.text));
    Ok(())
}

/// A class's id behind `word`, which may be said once; `wrong` where it is none.
pub(super) fn class_id(args: &mut Args, word: &str, wrong: &str, id: &mut Handle) -> Result<(), Failure> {
    let v = args.value()?;
    if *id != Handle::UNSPEC {
        return Err(args.duparg(word, &v.text));
    }
    *id = num::classid(&v.text, args.kernel()).ok_or_else(|| args.invarg_tc(wrong, &v.text, CLASSID_HELP))?;
    Ok(())
}

pub fn command(args: &mut Args, form: Form) -> Result<Command, Failure> {
    let qdisc = Object {
        name: "qdisc",
        commands: "add, change, replace, link, del, show",
        usage: usage::QDISC,
        links: true,
        show: Command::ShowQdisc,
        modify,
        list,
    };
    verb(args, form, &qdisc)
}

fn duplicate_parent(args: &Args, word: &str) -> Failure {
    let article = if word == "root" { "" } else { "a " };
    args.fail(format!("Error: \"{word}\" is {article}duplicate parent ID"), 255, "a qdisc has one parent")
}

fn modify(args: &mut Args, verb: Verb) -> Result<Command, Failure> {
    let mut dev: Option<String> = None;
    let mut req = QdiscRequest {
        verb,
        handle: Handle::UNSPEC,
        parent: Handle::UNSPEC,
        kind: None,
        options: None,
        estimator: None,
        stab: None,
        ingress_block: None,
        egress_block: None,
    };
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        match word.text.as_str() {
            "dev" => device(args, &mut dev)?,
            "handle" => {
                if req.handle != Handle::UNSPEC {
                    return Err(args.duparg("handle", &word.text));
                }
                let v = args.value()?;
                req.handle = num::qdisc_handle(&v.text, args.kernel())
                    .ok_or_else(|| args.invarg_tc("invalid qdisc ID", &v.text, HANDLE_HELP))?;
            }
            "root" => {
                if req.parent != Handle::UNSPEC {
                    return Err(duplicate_parent(args, "root"));
                }
                req.parent = Handle::ROOT;
            }
            "clsact" if !args.old() => {
                if req.parent != Handle::UNSPEC {
                    return Err(duplicate_parent(args, "clsact"));
                }
                // TC_H_CLSACT is TC_H_INGRESS.
                (req.parent, req.handle) = (Handle::INGRESS, Handle::INGRESS.qdisc());
                req.kind = Some("clsact".to_owned());
                break;
            }
            "ingress" => {
                if req.parent != Handle::UNSPEC {
                    return Err(duplicate_parent(args, "ingress"));
                }
                (req.parent, req.handle) = (Handle::INGRESS, Handle::INGRESS.qdisc());
                req.kind = Some("ingress".to_owned());
                break;
            }
            "parent" => class_id(args, "parent", "invalid parent ID", &mut req.parent)?,
            _ if is("estimator") => estimator::estimator(args, &mut req.estimator)?,
            _ if is("stab") => req.stab = Some(estimator::stab(args)?),
            _ if !args.old() && is("ingress_block") => req.ingress_block = block(args, "ingress")?,
            _ if !args.old() && is("egress_block") => req.egress_block = block(args, "egress")?,
            _ if is("help") => args.said.push(Command::Help(usage::QDISC.to_owned())),
            _ => {
                req.kind = Some(kind_name(&word.text));
                break;
            }
        }
    }
    if let Some(kind) = &req.kind {
        req.options = kinds::parse_qdisc(kind, args, dev.as_deref())?;
        if let Some(options) = &mut req.options
            && options.remove(kinds::CREATES).is_some()
        {
            req.verb = match req.verb {
                Verb::Change => Verb::Create,
                Verb::Link => Verb::Replace,
                verb => verb,
            };
        }
    }
    Ok(Command::Qdisc { dev, req })
}

/// `ingress_block N`: a shared block of filters. The last one given counts.
fn block(args: &mut Args, side: &str) -> Result<Option<u32>, Failure> {
    let v = args.value()?;
    match num::u32(&v.text, 0) {
        Some(index) if index != 0 => Ok(Some(index)),
        _ => Err(args.invarg(&format!("invalid {side} block index value"), &v.text, "a number from 1")),
    }
}

/// Device names are cut to 15 characters.
pub(super) fn device_name(text: &str) -> String {
    text.chars().take(15).collect()
}
/// Kinds are cut to 15 characters.
pub(super) fn kind_name(text: &str) -> String {
    text.chars().take(15).collect()
}

fn list(args: &mut Args, form: Form) -> Result<Command, Failure> {
    let mut show = Show { form, ..Show::default() };
    let old = args.old();
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        let once = |args: &Args, show: &Show| {
            if show.parent != Handle::UNSPEC {
                Err(args.invarg(
                    "parent is already specified",
                    &word.text,
                    "ask for one parent or one handle",
                ))
            } else if show.handle != Handle::UNSPEC {
                Err(args.invarg(
                    "handle is already specified",
                    &word.text,
                    "ask for one parent or one handle",
                ))
            } else {
                Ok(())
            }
        };
        if word.text == "dev" {
            show.dev = Some(device_name(&args.value()?.text));
        } else if old && word.text == "ingress" {
            if show.parent != Handle::UNSPEC {
                return Err(args.fail("Duplicate parent ID", 255, "ask for one parent").usage(usage::QDISC));
            }
            show.parent = Handle::INGRESS;
        } else if !old && word.text == "root" {
            once(args, &show)?;
            show.parent = Handle::ROOT;
        } else if !old && (word.text == "ingress" || word.text == "clsact") {
            once(args, &show)?;
            show.parent = Handle::INGRESS;
        } else if !old && is("parent") {
            once(args, &show)?;
            let v = args.value()?;
            show.parent = num::classid(&v.text, args.kernel())
                .ok_or_else(|| args.invarg("invalid parent ID", &v.text, CLASSID_HELP))?;
        } else if !old && is("handle") {
            once(args, &show)?;
            let v = args.value()?;
            show.handle = num::qdisc_handle(&v.text, args.kernel())
                .ok_or_else(|| args.invarg("invalid handle ID", &v.text, HANDLE_HELP))?;
        } else if is("help") {
            args.said.push(Command::Help(usage::QDISC.to_owned()));
        } else if !old && word.text == "invisible" {
            show.invisible = true;
        } else {
            return Err(args.fail(
                format!("What is \"{}\"? Try \"tc qdisc help\".", word.text),
                255,
                "after show: dev DEV, root, parent CLASSID, handle QHANDLE",
            ));
        }
    }
    Ok(Command::ShowQdisc(show))
}
