//! `xt`: a target of iptables as an action, gone from Linux since 6.8.
//!
//! tc reads the target as iptables does, says which, and asks a kernel that has no such action any more.
//!
//! Follows: iproute2 6.1.0 `tc/m_xt.c`.
//! Differs: the tc of 2010 had it as `ipt` or `xt`, as it was built; here it had neither.

use super::{Action, bad, index_here};
use crate::iptables::{self, Action as Verb, Family, Target};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::{Command, Failure};
use crate::token::Word;
use penstock_model::Options;

pub(super) static KIND: Action = Action { id: "xt", old: false, parse, print };

fn parse(args: &mut Args) -> Result<Options, Failure> {
    args.next_word();
    let few = "too few arguments for xt, need at least '-j <target>'";
    if args.rest().iter().take_while(|w| w.text != "action").count() < 2 {
        return Err(bad(args, few, "action xt -j MARK --set-mark 1"));
    }
    // As iptables would be given it; options and their values, until a word that is neither.
    let hook = hook(args);
    let mut line = vec!["iptables", "-t", "mangle", "-A", hook.0];
    while let Some(option) = args.peek_text().filter(|w| w.starts_with('-')) {
        args.next_word();
        line.push(option);
        if let Some(value) = args.peek_text().filter(|w| !w.starts_with('-')) {
            args.next_word();
            line.push(value);
        }
    }
    let words: Vec<Word> = line.iter().map(|w| Word::new(*w, 0)).collect();
    let target = line.iter().skip_while(|w| **w != "-j").nth(1).copied().unwrap_or("");
    let rule = match iptables::parse(&words, args.env.kernel).map(|c| c.action) {
        Ok(Verb::Append(_, mut rules, _)) if rules.first().is_some_and(|r| extension(&r.target)) => {
            rules.remove(0)
        }
        _ => {
            let line = format!(" failed to find target {target}\n");
            return Err(bad(args, line, "a target of iptables, e.g. -j MARK --set-mark 1"));
        }
    };
    let mut o = Options::new();
    index_here(args, &mut o, "Illegal \"index\"")?;
    let index = o.u32("index").unwrap_or(0);
    let said = iptables::print_target(&rule, Family::Ip, args.env.kernel);
    let text = format!("tablename: mangle hook: {}\n \ttarget: {said} index {index}\n", hook.1);
    args.said.push(Command::Say(text));
    Ok(o)
}

/// Whether it is one of xtables' targets; verdicts and chains are none.
fn extension(target: &Target) -> bool {
    !matches!(target, Target::None | Target::Verdict(_) | Target::Return | Target::Jump(_) | Target::Goto(_))
}

/// The chain of iptables and the hook: by the filter's parent, the ingress qdisc's or another.
fn hook(args: &Args) -> (&'static str, &'static str) {
    let ingress = |w: &[Word]| w[0].text == "parent" && matches!(w[1].text.as_str(), "ffff:" | "ffff:0");
    if args.all().windows(2).any(ingress) {
        ("PREROUTING", "NF_IP_PRE_ROUTING")
    } else {
        ("POSTROUTING", "NF_IP_POST_ROUTING")
    }
}

/// No kernel of today has any to show.
fn print(_: &Options, _: &mut Out) {}

#[cfg(test)]
mod tests {
    use crate::tc::{Command, parse};
    use crate::token::Line;
    use penstock_model::Kernel;

    fn read(line: &str) -> Result<Vec<Command>, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&Line::of_words(&words).words, Kernel::V6_12).map_err(|f| f.stderr)
    }

    #[test]
    fn says_what_tc_6_1_said_on_linux_6_12() {
        // Both seen there; the kernel then refuses it.
        let start =
            "tc filter add dev d0 parent ffff: protocol ip prio 1 u32 match u32 0 0 flowid 1:1 action";
        let said = read(&format!("{start} xt -j MARK --set-mark 1")).unwrap();
        let text = "tablename: mangle hook: NF_IP_PRE_ROUTING\n \ttarget:  MARK set 0x1 index 0\n";
        assert!(matches!(&said[0], Command::Say(t) if t == text), "{said:?}");
        let refused = " failed to find target NOSUCH\n\nbad action parsing\nparse_action: bad value (3:xt)!\nIllegal \"action\"\n";
        assert_eq!(read("tc actions add action xt -j NOSUCH").unwrap_err(), refused);
        let few = read("tc actions add action xt").unwrap_err();
        assert!(
            few.starts_with("too few arguments for xt, need at least '-j <target>'\nbad action parsing\n"),
            "{few}"
        );
    }
}
