//! `tc filter` and `tc chain`, which tc reads with the same functions.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/tc_filter.c`.

use super::args::{Args, matches};
use super::qdisc::{CLASSID_HELP, device_name, kind_name};
use super::{Command, Failure, Show, estimator, filters, no_device, num, usage};
use crate::show::Form;
use penstock_model::Handle;
use penstock_model::rtnetlink::{FilterRequest, Verb};

const ETH_P_ALL: u16 = 3;
/// `ingress` and `egress` of clsact.
const MIN_INGRESS: Handle = Handle(0xffff_fff2);
const MIN_EGRESS: Handle = Handle(0xffff_fff3);

/// `do_filter`.
pub fn command(args: &mut Args, form: Form) -> Result<Command, Failure> {
    let Some(word) = args.next_word() else {
        return Ok(Command::ShowFilter(Show { form, ..Show::default() }));
    };
    let is = |full: &str| matches(&word.text, full);
    if is("add") {
        modify(args, Verb::Add, false)
    } else if is("change") {
        modify(args, Verb::Change, false)
    } else if is("replace") {
        modify(args, Verb::Replace, false)
    } else if is("delete") {
        modify(args, Verb::Del, false)
    } else if !args.old() && is("get") {
        get(args, form, false)
    } else if is("list") || is("show") || is("lst") {
        list(args, form).map(Command::ShowFilter)
    } else if is("help") {
        Ok(Command::Help(usage::FILTER.to_owned()))
    } else {
        Err(args.fail(
            format!("Command \"{}\" is unknown, try \"tc filter help\".", word.text),
            255,
            "commands: add, change, replace, del, get, show",
        ))
    }
}

/// `do_chain`.
pub fn chain_command(args: &mut Args, form: Form) -> Result<Command, Failure> {
    let Some(word) = args.next_word() else {
        return Ok(Command::ShowChain(Show { form, ..Show::default() }));
    };
    let is = |full: &str| matches(&word.text, full);
    if is("add") {
        modify(args, Verb::Add, true)
    } else if is("delete") {
        modify(args, Verb::Del, true)
    } else if is("get") {
        get(args, form, true)
    } else if is("list") || is("show") || is("lst") {
        list(args, form).map(Command::ShowChain)
    } else if is("help") {
        Ok(Command::Help(usage::CHAIN.to_owned()))
    } else {
        Err(args.fail(
            format!("Command \"{}\" is unknown, try \"tc chain help\".", word.text),
            255,
            "commands: add, del, get, show",
        ))
    }
}

/// What stands before the kind, alike for all verbs.
#[derive(Default)]
struct Common {
    dev: Option<String>,
    block: u32,
    parent: Handle,
    handle: Option<String>,
    prio: u32,
    protocol: Option<u16>,
    chain: Option<u32>,
}

impl Common {
    /// Takes one word, and its value, where it is one of these. `show` words its complaints a little differently.
    fn take(&mut self, args: &mut Args, word: &str, show: bool) -> Result<bool, Failure> {
        let old = args.old();
        let is = |full: &str| matches(word, full);
        let parent_of = |name| match name {
            "root" => Handle::ROOT,
            "ingress" => MIN_INGRESS,
            _ => MIN_EGRESS,
        };
        let either = |args: &Args, one: &str, other: &str| {
            let line = if show {
                format!("Error: \"{one}\" cannot be used in the same time as \"{other}\"")
            } else {
                "Error: \"dev\" and \"block\" are mutually exclusive".to_owned()
            };
            args.fail(line, 255, "a filter hangs on a device or in a shared block")
        };
        match word {
            "dev" => {
                let v = args.value()?;
                if self.dev.is_some() {
                    return Err(args.duparg("dev", &v.text));
                }
                if self.block != 0 {
                    return Err(either(args, "dev", "block"));
                }
                self.dev = Some(device_name(&v.text)).filter(|name| !name.is_empty());
            }
            _ if !old && is("block") => {
                let v = args.value()?;
                if self.block != 0 {
                    return Err(args.duparg("block", &v.text));
                }
                if self.dev.is_some() {
                    return Err(either(args, "block", "dev"));
                }
                self.block = num::u32(&v.text, 0)
                    .filter(|&n| n != 0)
                    .ok_or_else(|| args.invarg("invalid block index value", &v.text, "a number from 1"))?;
            }
            "root" | "ingress" | "egress" if word == "root" || !old => {
                if self.parent != Handle::UNSPEC {
                    let line = format!("Error: \"{word}\" is duplicate parent ID");
                    return Err(args.fail(line, 255, "a filter has one parent"));
                }
                self.parent = parent_of(word);
            }
            "parent" => {
                let v = args.value()?;
                if self.parent != Handle::UNSPEC {
                    return Err(args.duparg("parent", &v.text));
                }
                let message = if show { "invalid parent ID" } else { "Invalid parent ID" };
                self.parent = num::classid(&v.text, args.kernel())
                    .ok_or_else(|| args.invarg_tc(message, &v.text, CLASSID_HELP))?;
            }
            "handle" => {
                let v = args.value()?;
                if self.handle.is_some() {
                    return Err(args.duparg("handle", &v.text));
                }
                self.handle = Some(v.text.clone());
            }
            _ if is("preference") || is("priority") => {
                let v = args.value()?;
                if self.prio != 0 {
                    return Err(args.duparg("priority", &v.text));
                }
                let message = if show { "invalid preference" } else { "invalid priority value" };
                self.prio =
                    num::u32(&v.text, 0).filter(|&p| old || show || p <= 0xffff).ok_or_else(|| {
                        args.invarg_tc(message, &v.text, "a number from 0 (the kernel chooses) to 65535")
                    })?;
            }
            _ if is("protocol") => {
                let v = args.value()?;
                if self.protocol.is_some_and(|p| !show || p != 0) {
                    return Err(args.duparg("protocol", &v.text));
                }
                self.protocol = Some(num::protocol(&v.text, args.kernel()).ok_or_else(|| {
                    args.invarg_tc("invalid protocol", &v.text, "ip, ipv6, arp, all, 802.1q, or an ethertype")
                })?);
            }
            _ if !old && is("chain") => {
                let v = args.value()?;
                if self.chain.is_some() {
                    return Err(args.duparg("chain", &v.text));
                }
                self.chain = Some(
                    num::u32(&v.text, 0)
                        .ok_or_else(|| args.invarg("invalid chain index value", &v.text, "a number"))?,
                );
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn modify(args: &mut Args, verb: Verb, chain: bool) -> Result<Command, Failure> {
    let creates = matches!(verb, Verb::Add | Verb::Replace) && !chain;
    let mut c = Common::default();
    let mut kind = None;
    let mut estimated = None;
    while let Some(word) = args.next_word() {
        if c.take(args, &word.text, false)? {
            continue;
        }
        if matches(&word.text, "estimator") {
            estimator::estimator(args, &mut estimated)?;
        } else if matches(&word.text, "help") {
            args.said.push(Command::Help(usage::FILTER.to_owned()));
            if !args.old() {
                return Ok(args.said.pop().expect("just pushed"));
            }
        } else {
            kind = Some(kind_name(&word.text));
            break;
        }
    }
    let mut req = FilterRequest {
        verb,
        block: c.block,
        parent: c.parent,
        // Before 2.6.37 tc gave the number of ETH_P_ALL without htons.
        protocol: c.protocol.unwrap_or(if !creates {
            0
        } else if args.old() {
            ETH_P_ALL.swap_bytes()
        } else {
            ETH_P_ALL
        }),
        prio: c.prio as u16,
        chain: c.chain,
        handle: 0,
        kind: kind.clone().filter(|kind| !kind.is_empty()),
        options: None,
        estimator: estimated,
    };
    if !args.old()
        && let Some(dev) = &c.dev
        && (args.env.device)(dev).is_none()
    {
        return Err(no_device(dev));
    }
    match kind {
        Some(kind) => {
            let given = filters::FilterHead {
                handle: c.handle.as_deref(),
                protocol: req.protocol,
                parent: req.parent,
            };
            (req.handle, req.options) = filters::parse(&kind, &given, args)?;
        }
        None if c.handle.is_some() => {
            let line = "Must specify filter type when using \"handle\"";
            return Err(args.fail(line, 255, "name the kind behind: … handle 10 fw"));
        }
        None => {}
    }
    let dev = c.dev;
    Ok(if chain { Command::Chain { dev, req } } else { Command::Filter { dev, req } })
}

fn get(args: &mut Args, form: Form, chain: bool) -> Result<Command, Failure> {
    let mut c = Common::default();
    let mut kind = None;
    while let Some(word) = args.next_word() {
        if c.take(args, &word.text, false)? {
            continue;
        }
        if matches(&word.text, "help") {
            return Ok(Command::Help(usage::FILTER.to_owned()));
        }
        if word.text.is_empty() {
            return Err(args.invarg("invalid filter name", "", "u32 or fw"));
        }
        kind = Some(kind_name(&word.text));
        break;
    }
    let example = if chain {
        "e.g. tc chain get dev eth0 ingress chain 5"
    } else {
        "e.g. tc filter get dev eth0 parent 1: protocol ip pref 1 handle 800::800 u32"
    };
    let must = |args: &Args, line: &str| Err(args.fail(line, 255, example));
    if !chain && c.protocol.is_none() {
        return must(args, "Must specify filter protocol");
    }
    if !chain && c.prio == 0 {
        return must(args, "Must specify filter priority");
    }
    if c.parent == Handle::UNSPEC {
        return must(args, "Must specify filter parent");
    }
    if !chain && kind.is_none() {
        return must(args, "Must specify filter type");
    }
    match &c.dev {
        Some(dev) if (args.env.device)(dev).is_none() => return Err(no_device(dev)),
        None if c.block == 0 => {
            return must(args, "Must specify netdevice \"dev\" or block index \"block\"");
        }
        _ => {}
    }
    let first = args.peek();
    let (mut handle, mut options) = (0, None);
    if let (false, Some(kind)) = (chain, &kind) {
        let protocol = c.protocol.unwrap_or(0);
        let given = filters::FilterHead { handle: c.handle.as_deref(), protocol, parent: c.parent };
        (handle, options) = filters::parse(kind, &given, args)?;
        if c.handle.is_none() {
            return must(args, "Must specify filter \"handle\"");
        }
    }
    if let Some(word) = first {
        let line = format!("Garbage instead of arguments \"{} ...\". Try \"tc filter help\".", word.text);
        let mut failure = args.fail_at(Some(word), line, 255, "nothing follows the kind");
        if matches(&word.text, "help") {
            failure.stderr = format!("{}{}", usage::FILTER, failure.stderr);
        }
        return Err(failure);
    }
    let req = FilterRequest {
        // The verb does not matter.
        verb: Verb::Change,
        block: c.block,
        parent: c.parent,
        protocol: c.protocol.unwrap_or(0),
        prio: c.prio as u16,
        chain: c.chain,
        handle,
        kind,
        options,
        estimator: None,
    };
    // The answer is printed with everything but the device.
    let show = Show { dev: c.dev, block: c.block, form, ..Show::default() };
    Ok(if chain { Command::GetChain(show, req) } else { Command::GetFilter(show, req) })
}

fn list(args: &mut Args, form: Form) -> Result<Show, Failure> {
    let mut c = Common::default();
    while let Some(word) = args.next_word() {
        if c.take(args, &word.text, true)? {
            continue;
        }
        if matches(&word.text, "help") {
            args.said.push(Command::Help(usage::FILTER.to_owned()));
        } else {
            let line = format!(" What is \"{}\"? Try \"tc filter help\"", word.text);
            return Err(args.fail(
                line,
                255,
                "after show: dev DEV, block INDEX, root, parent CLASSID, pref PRIO, protocol PROTO, chain INDEX",
            ));
        }
    }
    Ok(Show {
        dev: c.dev,
        block: c.block,
        parent: c.parent,
        prio: c.prio,
        protocol: c.protocol.unwrap_or(0),
        chain: c.chain,
        form,
        ..Show::default()
    })
}
