//! `bpf`: ask a program.
//!
//! Follows: iproute2 6.1.0 `tc/m_bpf.c`, `lib/bpf_legacy.c`.
//! Differs: nothing is ever pinned; `export` hands maps to nobody.

use super::{Action, PIPE, advance, bad, control, explained, index_here, print_index, print_times};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::{Args, matches};
use crate::tc::bpf::{help, load, of_file, print_object, print_ops, program, wanted};
use crate::tc::object::ACTION;
use penstock_model::{Options, Value};

pub(super) static KIND: Action = Action { id: "bpf", old: false, parse, print };

const USAGE: &str = "\
Usage: ... bpf ... [ index INDEX ]
       bytecode 'N,c t f k,...' | bytecode-file FILE | object-file FILE [ section NAME ] [ export FILE ] [ verbose ] | object-pinned FILE
";
const EXAMPLE: &str = "e.g. bpf bytecode '1,6 0 0 4294967295'";

fn parse(args: &mut Args) -> Result<Options, Failure> {
    advance(args)?;
    let mut o = Options::new();
    let mut seen = false;
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        if is("run") {
            advance(args)?;
            let next = args.peek_text().unwrap_or("");
            if seen {
                return Err(args.duparg("run", next));
            }
            run(args, &mut o)?;
            seen = true;
        } else if is("help") {
            return Err(explained(args, "", USAGE));
        } else if is("index") || seen {
            break;
        } else {
            run(args, &mut o)?;
            seen = true;
        }
    }
    let action = control::control_or(args, false, PIPE)?;
    o.set("action", i64::from(action).into());
    index_here(args, &mut o, "bpf: Illegal \"index\"")?;
    Ok(o)
}

/// `bpf_parse_and_load_common`: a program and where it comes from.
fn run(args: &mut Args, o: &mut Options) -> Result<(), Failure> {
    let word = args.peek_text().unwrap_or("");
    let is = |full: &str| matches(word, full);
    let file = is("bytecode-file") || word == "bcf";
    // "obj" and "object" begin both words; the file is asked for first.
    let object = is("object-file") || word == "obj";
    let pinned = !object && (is("object-pinned") || is("pinned") || is("fd"));
    let code = is("bytecode") || word == "bc";
    if !code && !file && !object && !pinned {
        return Err(bad(args, format!("What mode is \"{word}\"?"), EXAMPLE));
    }
    advance(args)?;
    let value = args.next_word().map_or("", |w| w.text.as_str());
    if object || pinned {
        let wanted = wanted(args, value, ACTION)?;
        if pinned {
            let line = format!("Couldn't retrieve pinned program '{value}': No such file or directory");
            return Err(bad(args, line, "nothing is pinned here; give the object's file"));
        }
        return load(args, &wanted, o).map_err(|said| bad(args, said.trim_end(), help(&said)));
    }
    let text = match code {
        true => value.to_owned(),
        false => match args.env.objects.read(value) {
            Some(text) => of_file(&text),
            None => return Err(bad(args, "Cannot fopen: No such file or directory", EXAMPLE)),
        },
    };
    match program(&text) {
        Ok(ops) => {
            o.set("ops", Value::List(ops));
            Ok(())
        }
        Err(said) if said.is_empty() => Err(super::silent(args)),
        Err(said) => Err(bad(args, said.trim_end(), EXAMPLE)),
    }
}

fn print(o: &Options, out: &mut Out) {
    out.string("kind", "bpf", format_args!("bpf "));
    let ops = o.list("ops");
    if !ops.is_empty() {
        print_ops(ops, out);
        out.text_only(format_args!(" "));
    }
    if let Some(name) = o.str("bpf_name") {
        out.string("bpf_name", name, format_args!("{name} "));
        print_object(o, out);
    }
    control::print_control("default-action ", control::of(o), "", out);
    out.nl();
    print_index(o, out);
    if out.form.stats {
        print_times(o, out);
    }
    out.text_only(format_args!("\n "));
}
