//! What the kernel refuses of a whole ruleset at the end of a call: chains in a circle, statements where they may not stand.

use super::{Ruleset, TableState, targets};
use penstock_lang::nft::{Command, Expr, Fault, FibResult, Name, Pos, Statement, fib};

/// Chains within chains (`NFT_JUMP_STACK_SIZE`).
const DEPTH: usize = 16;

impl Ruleset {
    /// Looks at the tables the commands have touched; the fault stands at the last command that touched the chain.
    pub(super) fn check(&self, commands: &[Command]) -> Result<(), Fault> {
        for command in commands {
            let (name, pos, rule) = match command {
                Command::AddRule(name, _, _, rule, pos) | Command::ReplaceRule(name, _, pos, rule) => {
                    (name, *pos, rule)
                }
                _ => continue,
            };
            let Some(table) = self.tables.iter().find(|t| t.family == name.family && t.name == name.table)
            else {
                continue;
            };
            for target in targets(rule) {
                match table.chain(target) {
                    None => {
                        let help = "create the chain first: nft add chain".to_owned();
                        return Err(Fault { message: self.no_chain(name).message, pos, help });
                    }
                    Some(at) if table.chains[at].base.is_some() => {
                        let help = "a rule cannot jump to a chain that hangs at a hook";
                        return Err(Fault::kernel(pos, "Operation not supported", help));
                    }
                    Some(_) => {}
                }
            }
            table.check(name, pos)?;
        }
        Ok(())
    }
}

/// Where `fib` may stand (`nft_fib_validate`); none: the expression asks for no routes.
fn fib_hooks(e: &Expr) -> Option<&'static [&'static str]> {
    let Expr::Fib { by, result } = e else { return None };
    Some(match (result, by & fib::IIF != 0, by & fib::OIF != 0) {
        (FibResult::Type, true, _) => &["prerouting", "input", "forward"],
        (FibResult::Type, _, true) => &["output", "postrouting", "forward"],
        (FibResult::Type, ..) => &["prerouting", "input", "forward", "output", "postrouting"],
        _ => &["prerouting", "input", "forward"],
    })
}

impl TableState {
    fn check(&self, _: &Name, pos: Pos) -> Result<(), Fault> {
        for chain in self.chains.iter().filter(|c| c.base.is_some()) {
            let Some(base) = &chain.base else { continue };
            let mut path: Vec<&str> = vec![&chain.name];
            self.walk(&chain.name, &base.hook, &base.ty, &mut path, pos)?;
        }
        Ok(())
    }

    fn walk<'a>(
        &'a self,
        name: &str,
        hook: &str,
        ty: &str,
        path: &mut Vec<&'a str>,
        pos: Pos,
    ) -> Result<(), Fault> {
        let Some(at) = self.chain(name) else { return Ok(()) };
        for state in &self.chains[at].rules {
            for statement in &state.rule.statements {
                let fits = match statement {
                    Statement::Reject(..) => ["input", "forward", "output", "prerouting"].contains(&hook),
                    Statement::Nat(text) => {
                        let word = text.split(' ').next().unwrap_or("");
                        ty == "nat"
                            && match word {
                                "masquerade" => hook == "postrouting",
                                "snat" => matches!(hook, "postrouting" | "input"),
                                _ => matches!(hook, "prerouting" | "output"),
                            }
                    }
                    Statement::Match(left, ..) | Statement::Vmap(left, _) if fib_hooks(left).is_some() => {
                        fib_hooks(left).is_none_or(|hooks| hooks.contains(&hook))
                    }
                    Statement::Other(text) if text.contains("rt mtu") => {
                        ["forward", "output", "postrouting"].contains(&hook)
                    }
                    _ => true,
                };
                if !fits {
                    let help = format!("this statement cannot stand in a chain of type {ty} at {hook}");
                    return Err(Fault::kernel(pos, "Operation not supported", &help));
                }
            }
            for target in targets(&state.rule) {
                let Some(to) = self.chain(target) else { continue };
                let own: &str = &self.chains[to].name;
                if path.contains(&own) || path.len() >= DEPTH {
                    let help = format!("{target} would be reached from itself");
                    return Err(Fault::kernel(pos, "Too many links", &help));
                }
                path.push(own);
                self.walk(own, hook, ty, path, pos)?;
                path.pop();
            }
        }
        Ok(())
    }
}
