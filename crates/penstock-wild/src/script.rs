//! Scripts as people write them, with what interpreters stumble over.

use crate::tc::Kinds;
use crate::{Result, Unstructured, number, one, tc};
use std::fmt::Write as _;

/// A bash script of commands of tc among variables, loops, functions, pipes and traps.
///
/// # Errors
/// Those of [`Unstructured`].
pub fn bash(u: &mut Unstructured<'_>) -> Result<String> {
    let mut out = String::from("#!/bin/bash\nDEV=eth0\n");
    for _ in 0..u.int_in_range(1..=6)? {
        block(u, &mut out, 0)?;
    }
    Ok(out)
}

fn block(u: &mut Unstructured<'_>, out: &mut String, depth: usize) -> Result<()> {
    let word = one(
        u,
        &[
            "a",
            "$DEV",
            "\"$DEV\"",
            "${x:-1}",
            "$((1+2))",
            "`echo b`",
            "$(echo c)",
            "{1..3}",
            "\"$@\"",
            "*",
            "''",
        ],
    )?;
    let deeper = depth < 3;
    match u.int_in_range(0..=12)? {
        0 if deeper => {
            let _ = writeln!(out, "for i in {word} {word}; do");
            block(u, out, depth + 1)?;
            let _ = writeln!(out, "done");
        }
        1 if deeper => {
            let _ = writeln!(out, "if [ {word} {} {word} ]; then", one(u, &["=", "!=", "-lt", "-eq"])?);
            block(u, out, depth + 1)?;
            let _ = writeln!(out, "else");
            block(u, out, depth + 1)?;
            let _ = writeln!(out, "fi");
        }
        2 if deeper => {
            let _ = writeln!(out, "f{depth}() {{");
            block(u, out, depth + 1)?;
            let _ = writeln!(out, "}}\nf{depth} {word}");
        }
        3 if deeper => {
            let _ = writeln!(out, "while read x y; do");
            block(u, out, depth + 1)?;
            let _ = writeln!(out, "done <<EOF\n{word} 1\nlast\nEOF");
        }
        4 => {
            let _ = writeln!(out, "x={word}; y=\"${{x%%*:}}\"; z=(1 2 {word}); echo ${{#z[@]}} $y");
        }
        5 => {
            let _ = writeln!(
                out,
                "echo {word} | {} > out.txt 2>&1",
                one(u, &["sort", "wc -l", "awk '{print $1}'", "sed s/a/b/", "tr a b", "grep -c ."])?
            );
        }
        6 => {
            let _ = writeln!(out, "trap 'tc qdisc del dev $DEV root' {}", one(u, &["EXIT", "INT", "ERR"])?);
        }
        7 => {
            let _ = writeln!(
                out,
                "case {word} in a*) echo one;; *) {};; esac",
                tc::change(u, "$DEV", Kinds::All)?
            );
        }
        8 => {
            let _ = writeln!(
                out,
                "x=$(( {} {} {} ))",
                number(u, 0, u32::MAX)?,
                one(u, &["+", "*", "/", "%", "<<", "**"])?,
                number(u, 0, 70)?
            );
        }
        _ => {
            for line in tc::tree(u, "$DEV", Kinds::All)? {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    Ok(())
}

/// A Python script that calls tc.
///
/// # Errors
/// Those of [`Unstructured`].
pub fn python(u: &mut Unstructured<'_>) -> Result<String> {
    let mut out = String::from("#!/usr/bin/env python3\nimport os, subprocess, sys\ndev = 'eth0'\n");
    for _ in 0..u.int_in_range(1..=6)? {
        let command = tc::change(u, "eth0", Kinds::All)?;
        match u.int_in_range(0..=6)? {
            0 => {
                let _ = writeln!(
                    out,
                    "for i in range({}):\n    os.system('tc qdisc show dev %s' % dev)",
                    number(u, 0, 9)?
                );
            }
            1 => {
                let words: Vec<String> = command.split(' ').map(|w| format!("'{w}'")).collect();
                let _ = writeln!(
                    out,
                    "subprocess.run([{}], check={})",
                    words.join(", "),
                    one(u, &["True", "False"])?
                );
            }
            2 => {
                let _ = writeln!(
                    out,
                    "def f(x, y={}):\n    return '%s {{}}'.format(y) % x\nos.system(f('{command}'))",
                    number(u, 0, 9)?
                );
            }
            3 => {
                let _ = writeln!(
                    out,
                    "rates = {{'a': {}, 'b': 2}}\nfor k, v in rates.items():\n    os.system(f'tc class add dev {{dev}} parent 1: classid 1:{{v}} htb rate {{v}}mbit')",
                    number(u, 0, 900)?
                );
            }
            4 => {
                let _ = writeln!(
                    out,
                    "try:\n    subprocess.check_call('{command}', shell=True)\nexcept Exception as e:\n    sys.exit(1)"
                );
            }
            _ => {
                for line in tc::tree(u, "eth0", Kinds::All)? {
                    let _ = writeln!(out, "os.system('{line}')");
                }
            }
        }
    }
    Ok(out)
}
