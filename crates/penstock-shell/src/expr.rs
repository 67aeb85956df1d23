//! `expr`: of the interpreter's own the sums of more than two numbers are no sums.
//!
//! Follows: POSIX `expr`, and coreutils 9.4 `src/expr.c` for messages and for what is a number. What compares with a pattern (`:`, `match`) and the other
//! words about strings are the interpreter's own.

use crate::tools::own;
use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};

/// The program.
pub(crate) struct Expr;

/// Operators by their precedence, the loosest first.
const LEVELS: [&[&str]; 5] =
    [&["|"], &["&"], &["<", "<=", "=", "==", "!=", ">=", ">"], &["+", "-"], &["*", "/", "%"]];

#[async_trait]
impl Builtin for Expr {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let words: Vec<&str> = ctx.args.iter().map(String::as_str).collect();
        let strings =
            |w: &&str| matches!(*w, ":" | "match" | "substr" | "index" | "length" | "--help" | "--version");
        if words.is_empty() || words.iter().any(strings) {
            return own("expr", &ctx).await;
        }
        Ok(match value(&words) {
            Ok(said) => ExecResult::with_code(format!("{said}\n"), i32::from(is_null(&said))),
            Err(why) => ExecResult::err(format!("expr: {why}\n"), 2),
        })
    }
}

/// Whether a value is none: `expr` ends with status 1 then.
fn is_null(value: &str) -> bool {
    value.is_empty() || number(value).ok() == Some(0)
}

fn number(word: &str) -> std::result::Result<i64, String> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    match digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        true => Err("non-integer argument".to_owned()),
        false => word.parse().map_err(|_| format!("{word}: Numerical result out of range")),
    }
}

fn value(words: &[&str]) -> std::result::Result<String, String> {
    let mut at = 0;
    let found = level(words, &mut at, 0)?;
    match words.get(at) {
        None => Ok(found),
        Some(word) => Err(format!("syntax error: unexpected argument '{word}'")),
    }
}

fn level(words: &[&str], at: &mut usize, of: usize) -> std::result::Result<String, String> {
    let Some(operators) = LEVELS.get(of) else { return operand(words, at) };
    let mut left = level(words, at, of + 1)?;
    while let Some(operator) = words.get(*at).filter(|w| operators.contains(w)) {
        *at += 1;
        let right = level(words, at, of + 1)?;
        left = apply(&left, operator, &right)?;
    }
    Ok(left)
}

fn operand(words: &[&str], at: &mut usize) -> std::result::Result<String, String> {
    let missing = |at: usize| match at.checked_sub(1).and_then(|n| words.get(n)) {
        Some(before) => format!("syntax error: missing argument after '{before}'"),
        None => "missing operand".to_owned(),
    };
    let word = words.get(*at).ok_or_else(|| missing(*at))?;
    *at += 1;
    if *word != "(" {
        return Ok((*word).to_owned());
    }
    let inner = level(words, at, 0)?;
    match words.get(*at) {
        Some(&")") => *at += 1,
        _ => return Err(format!("syntax error: expecting ')' after '{}'", words[*at - 1])),
    }
    Ok(inner)
}

fn apply(left: &str, operator: &str, right: &str) -> std::result::Result<String, String> {
    let truth = |is: bool| Ok(i32::from(is).to_string());
    let order = match (number(left), number(right)) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => left.cmp(right),
    };
    let sum =
        |a: Option<i64>| a.map(|n| n.to_string()).ok_or_else(|| "Numerical result out of range".to_owned());
    match operator {
        "|" => Ok(if !is_null(left) {
            left
        } else if is_null(right) {
            "0"
        } else {
            right
        }
        .to_owned()),
        "&" => Ok(if is_null(left) || is_null(right) { "0" } else { left }.to_owned()),
        "<" => truth(order.is_lt()),
        "<=" => truth(order.is_le()),
        "=" | "==" => truth(order.is_eq()),
        "!=" => truth(order.is_ne()),
        ">=" => truth(order.is_ge()),
        ">" => truth(order.is_gt()),
        _ => {
            let (a, b) = (number(left)?, number(right)?);
            if b == 0 && matches!(operator, "/" | "%") {
                return Err("division by zero".to_owned());
            }
            sum(match operator {
                "+" => a.checked_add(b),
                "-" => a.checked_sub(b),
                "*" => a.checked_mul(b),
                "/" => a.checked_div(b),
                _ => a.checked_rem(b),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_go_before_sums_and_both_from_the_left() {
        let of = |line: &str| value(&line.split(' ').collect::<Vec<_>>());
        let is = |line: &str, said: &str| assert_eq!(of(line), Ok(said.to_owned()), "{line}");
        is("1000 * 85 / 100", "850");
        is("2 + 3 * 4 - 1", "13");
        is("10 - 3 - 2", "5");
        is("( 2 + 3 ) * 4", "20");
        is("-7 / 2", "-3");
        is("-7 % 2", "-1");
        is("10 > 9", "1");
        is("a < b", "1");
        is("0 | 5", "5");
        is("3 & 0", "0");
        is("wan", "wan");
        let no = |line: &str, why: &str| assert_eq!(of(line), Err(why.to_owned()), "{line}");
        no("1.5 * 2", "non-integer argument");
        no("10mbit * 2", "non-integer argument");
        no("5 / 0", "division by zero");
        no("5 *", "syntax error: missing argument after '*'");
        no("5 6", "syntax error: unexpected argument '6'");
        no("( 5 + 1", "syntax error: expecting ')' after '1'");
        assert!(is_null("0") && is_null("") && is_null("-0") && !is_null("00a") && !is_null("1"));
    }
}
