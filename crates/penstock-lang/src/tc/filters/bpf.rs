//! `bpf`: a program decides. Classic programs are given as numbers, others as objects; pinned programs are none of this machine's.
//!
//! Follows: iproute2 6.1.0 `tc/f_bpf.c`, `lib/bpf_legacy.c` `bpf_parse_common`, `bpf_ops_parse`, `bpf_print_ops`.
//! Differs: nothing is ever pinned; `export` hands maps to nobody.

use super::{FilterHead, FilterKind, exts};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::{Args, matches};
use crate::tc::bpf::{help, load, of_file, print_object, print_ops, program, wanted};
use crate::tc::kinds::{helped, what_is, word};
use crate::tc::object::{CLASSIFIER, Wanted};
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Options, Value};

const USAGE: &str = "\
Usage: ... bpf ...
       ... bpf { bytecode 'N,c t f k,c t f k,...' | bytecode-file FILE |
          object-file FILE [ section NAME ] [ export FILE ] [ verbose ] | object-pinned FILE }
          [ direct-action ] [ skip_hw | skip_sw ] [ action ACTION_SPEC ] [ classid CLASSID ]
";

pub static KIND: FilterKind = FilterKind {
    id: "bpf",
    old: false,
    parse,
    print,
    words: &[
        word("bytecode", "PROGRAM", "a classic program: how many instructions, and each as four numbers"),
        word("bytecode-file", "FILE", "the same from a file"),
        word("object-file", "FILE", "an ELF file with an eBPF program"),
        word("object-pinned", "FILE", "an eBPF program pinned to a file"),
        word("direct-action", "", "the program answers with an action"),
        word("classid", "CLASSID", "the class packets go to"),
        word("action", "ACTION_SPEC", "action for matching packets"),
        word("skip_hw", "", "do not offload to hardware"),
        word("skip_sw", "", "only offload to hardware"),
    ],
};

const UNABLE: &str = "Unable to parse bpf command line";

/// `bpf_parse_common` at the word `first`; answers which object is to be loaded when all is read.
fn run(args: &mut Args, first: &str, o: &mut Options) -> Result<Option<Wanted>, Failure> {
    let is = |full: &str| matches(first, full);
    let unable = |args: &Args, said: &str| {
        Err(args.fail(UNABLE, 1, "bytecode 'N,c t f k,...' or object-file FILE").said_before(said))
    };
    let code = is("bytecode") || first == "bc";
    if code || is("bytecode-file") || first == "bcf" {
        let v = args.value()?;
        let text = match code {
            true => v.text.clone(),
            false => match args.env.objects.read(&v.text) {
                Some(text) => of_file(&text),
                None => return unable(args, "Cannot fopen: No such file or directory\n"),
            },
        };
        match program(&text) {
            Ok(instructions) => o.set("ops", Value::List(instructions)),
            Err(said) => return unable(args, &said),
        };
        return Ok(None);
    }
    // "obj" and "object" begin both words; the file is asked for first.
    let object = is("object-file") || first == "obj";
    let pinned = !object && (is("object-pinned") || is("pinned") || is("fd"));
    if !object && !pinned {
        return unable(args, &format!("What mode is \"{first}\"?\n"));
    }
    let path = args.value()?.text.clone();
    let wanted = wanted(args, &path, CLASSIFIER)?;
    if pinned {
        let said = format!("Couldn't retrieve pinned program '{path}': No such file or directory\n");
        return unable(args, &said);
    }
    Ok(Some(wanted))
}

fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let handle = exts::strict_handle(given.handle, args)?;
    if args.left() == 0 {
        return Ok((handle, None));
    }
    let mut o = Options::new();
    let (mut flags, mut direct, mut seen, mut object) = (0, false, false, None);
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("run") {
            let v = args.value()?;
            if seen {
                return Err(args.duparg("run", &v.text));
            }
            seen = true;
            object = run(args, &v.text, &mut o)?;
        } else if is("classid") || is("flowid") {
            o.set("classid", exts::classid(args)?.into());
        } else if is("direct-action") || is("da") {
            direct = true;
        } else if is("skip_hw") {
            flags |= exts::SKIP_HW;
        } else if is("skip_sw") {
            flags |= exts::SKIP_SW;
        } else if is("action") {
            exts::action(args, &mut o, "Illegal \"action\"")?;
        } else if is("police") {
            exts::police(args, &mut o)?;
        } else if is("help") {
            return Err(helped(args, USAGE));
        } else if !seen {
            seen = true;
            object = run(args, &word.text, &mut o)?;
        } else {
            let help = "bpf takes bytecode, object-file, classid, action, direct-action";
            return Err(what_is(args, &word.text, USAGE, help));
        }
    }
    if let Some(wanted) = object
        && let Err(said) = load(args, &wanted, &mut o)
    {
        return Err(args.fail("Unable to load program", 1, help(&said)).said_before(&said));
    }
    if flags != 0 {
        o.set("flags_gen", flags.into());
    }
    if direct {
        o.set("flags", 1u32.into());
    }
    Ok((handle, Some(o)))
}

fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    if dump.handle != 0 {
        let handle = format!("0x{:x}", dump.handle);
        out.string("handle", &handle, format_args!("handle {handle} "));
    }
    exts::print_flowid(o, out);
    let object = o.str("bpf_name");
    if let Some(name) = object {
        out.string("bpf_name", name, format_args!("{name} "));
    }
    if o.u32("flags").unwrap_or(0) & 1 != 0 {
        out.flag("direct-action", format_args!("direct-action "));
    }
    exts::print_flags(o.u32("flags_gen").unwrap_or(0), "", " ", out);
    let ops = o.list("ops");
    if !ops.is_empty() {
        print_ops(ops, out);
    }
    if object.is_some() {
        print_object(o, out);
    }
    exts::print_old_police(o, true, out);
    exts::print_action(o, out);
}
