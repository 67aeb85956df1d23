//! `tc class`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/tc_class.c`.

use super::args::{Args, matches};
use super::qdisc::{CLASSID_HELP, HANDLE_HELP, Object, class_id, device, kind_name, verb};
use super::{Command, Failure, Show, estimator, kinds, num, usage};
use crate::show::Form;
use penstock_model::Handle;
use penstock_model::rtnetlink::{ClassRequest, Verb};

pub fn command(args: &mut Args, form: Form) -> Result<Command, Failure> {
    let class = Object {
        name: "class",
        commands: "add, change, replace, del, show",
        usage: usage::CLASS,
        links: false,
        show: Command::ShowClass,
        modify,
        list,
    };
    verb(args, form, &class)
}

fn modify(args: &mut Args, verb: Verb) -> Result<Command, Failure> {
    let mut dev: Option<String> = None;
    let mut req = ClassRequest {
        verb,
        classid: Handle::UNSPEC,
        parent: Handle::UNSPEC,
        kind: None,
        options: None,
        estimator: None,
    };
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        match word.text.as_str() {
            "dev" => device(args, &mut dev)?,
            "classid" => class_id(args, "classid", "invalid class ID", &mut req.classid)?,
            "handle" => {
                let line = "Error: try \"classid\" instead of \"handle\"";
                return Err(args.fail(line, 255, "a class has a classid"));
            }
            "root" => {
                if req.parent != Handle::UNSPEC {
                    let line = "Error: \"root\" is duplicate parent ID.";
                    return Err(args.fail(line, 255, "a class has one parent"));
                }
                req.parent = Handle::ROOT;
            }
            "parent" => class_id(args, "parent", "invalid parent ID", &mut req.parent)?,
            _ if is("estimator") => estimator::estimator(args, &mut req.estimator)?,
            _ if is("help") => args.said.push(Command::Help(usage::CLASS.to_owned())),
            _ => {
                req.kind = Some(kind_name(&word.text));
                break;
            }
        }
    }
    if let Some(kind) = &req.kind {
        args.exclusive = verb == Verb::Add;
        req.options = kinds::parse_class(kind, args, dev.as_deref())?;
    }
    Ok(Command::Class { dev, req })
}

fn list(args: &mut Args, form: Form) -> Result<Command, Failure> {
    let mut show = Show { form, ..Show::default() };
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "dev" => device(args, &mut show.dev)?,
            "qdisc" => {
                let v = args.value()?;
                if show.qdisc != Handle::UNSPEC {
                    return Err(args.duparg("qdisc", &v.text));
                }
                show.qdisc = num::qdisc_handle(&v.text, args.kernel())
                    .ok_or_else(|| args.invarg_tc("invalid qdisc ID", &v.text, HANDLE_HELP))?;
            }
            "classid" => class_id(args, "classid", "invalid class ID", &mut show.classid)?,
            "root" => {
                if show.parent != Handle::UNSPEC {
                    let line = "Error: \"root\" is duplicate parent ID";
                    return Err(args.fail(line, 255, "ask for one parent"));
                }
                show.parent = Handle::ROOT;
            }
            "parent" => {
                if show.parent != Handle::UNSPEC {
                    return Err(args.duparg("parent", &word.text));
                }
                let v = args.value()?;
                show.parent = num::classid(&v.text, args.kernel())
                    .ok_or_else(|| args.invarg_tc("invalid parent ID", &v.text, CLASSID_HELP))?;
            }
            other if matches(other, "help") => args.said.push(Command::Help(usage::CLASS.to_owned())),
            other => {
                let line = format!("What is \"{other}\"? Try \"tc class help\".");
                let help = "after show: dev DEV, root, parent CLASSID, qdisc QHANDLE, classid CLASSID";
                return Err(args.fail(line, 255, help));
            }
        }
    }
    Ok(Command::ShowClass(show))
}
