//! Programs of BPF as tc reads, loads and prints them: classic ones, and those of objects.
//!
//! Follows: iproute2 6.1.0 `lib/bpf_legacy.c` `bpf_do_parse`, `bpf_parse_string`, `bpf_ops_parse`, `bpf_print_ops`, `bpf_dump_prog_info`.

use super::args::{Args, matches};
use super::object::{self, Wanted};
use super::{Failure, num};
use crate::show::Out;
use penstock_model::{KernelError, Options, binary};

/// `BPF_MAXINSNS`.
const INSTRUCTIONS_MAX: u64 = 4096;

/// `sscanf` of a number of this many bits, cut to it.
fn scan(text: &str, bits: u32) -> Option<(u32, &str)> {
    let (n, rest) = num::strtoul(text, 10)?;
    Some((n as u32 & (u64::MAX >> (64 - bits)) as u32, rest))
}

/// `%hu %hhu %hhu %u`.
fn instruction(text: &str) -> Option<[u32; 4]> {
    let mut rest = text;
    let mut numbers = [0; 4];
    for (number, bits) in numbers.iter_mut().zip([16, 8, 8, 32]) {
        (*number, rest) = scan(rest, bits)?;
    }
    Some(numbers)
}

/// `bpf_ops_parse`: the instructions, or what tc says of the program.
pub fn program(text: &str) -> Result<Vec<Options>, String> {
    let none = || Err(String::new());
    let Some((len, rest)) = scan(text, 16) else { return none() };
    if !rest.starts_with(',') || len == 0 || u64::from(len) > INSTRUCTIONS_MAX {
        return none();
    }
    let mut instructions = Vec::new();
    let mut rest = text;
    while let Some((_, token)) = rest.split_once(',') {
        if token.is_empty() {
            break;
        }
        rest = token;
        if instructions.len() as u32 >= len {
            return Err("Real program length exceeds encoded length parameter!\n".to_owned());
        }
        let Some([code, jt, jf, k]) = instruction(token) else {
            return Err(format!("Error at instruction {}!\n", instructions.len()));
        };
        let one = Options::new().with("code", code).with("jt", jt).with("jf", jf).with("k", k);
        instructions.push(one);
    }
    if instructions.len() as u32 != len {
        return Err("Parsed program length is less than encoded length parameter!\n".to_owned());
    }
    Ok(instructions)
}

/// `bpf_parse_string` of a file: its lines are joined by commas, and many blanks are one.
pub fn of_file(text: &str) -> String {
    let (mut out, mut before) = (String::new(), ' ');
    for c in text.chars() {
        match c {
            '\n' => {
                if before != ',' {
                    out.push(',');
                }
                before = ',';
            }
            ' ' | '\t' => {
                if before != ' ' {
                    out.push(c);
                }
                before = ' ';
            }
            _ => {
                out.push(c);
                before = c;
            }
        }
    }
    out
}

/// The words behind an object's path: `section NAME`, `program NAME`, `export FILE`, `verbose`.
pub fn wanted(args: &mut Args, path: &str, section: &str) -> Result<Wanted, Failure> {
    let mut wanted = Wanted { path: path.to_owned(), section: section.to_owned(), program: None };
    for name in ["section", "program", "export"] {
        let here = |w: &str| if name == "program" { w == name } else { matches(w, name) };
        if args.peek_text().is_some_and(here) {
            args.next_word();
            let value = args.value()?.text.clone();
            match name {
                "section" => wanted.section = value,
                "program" => wanted.program = Some(value),
                // Maps are handed to nobody.
                _ => {}
            }
        }
    }
    if args.peek_text().is_some_and(|w| matches(w, "verbose")) {
        args.next_word();
    }
    Ok(wanted)
}

/// `bpf_do_load`: sets `object`, or gives what is written to stderr.
pub fn load(args: &Args, wanted: &Wanted, o: &mut Options) -> Result<(), String> {
    let objects = args.env.objects;
    let text = objects.read(&wanted.path).ok_or("Cannot initialize ELF context!\n")?;
    let mut loaded = object::load(&binary::bytes_of(&text), wanted)?;
    let id = objects.load(&Options::new().with("object", loaded.clone())).map_err(|(errno, log)| {
        let name = loaded.str("program").unwrap_or_default();
        let why = KernelError::errno(errno);
        format!(
            "libbpf: prog '{name}': BPF program load failed: {}\n\
             libbpf: prog '{name}': -- BEGIN PROG LOAD LOG --\n{log}\n-- END PROG LOAD LOG --\n\
             libbpf: prog '{name}': failed to load: -{errno}\nlibbpf: failed to load object '{}'\n",
            why.strerror(),
            wanted.path
        )
    })?;
    loaded.set("id", id.into());
    o.set("object", loaded.into());
    Ok(())
}

/// What is said to do about an object that is not there, or not taken.
pub fn help(said: &str) -> &'static str {
    match said.starts_with("Cannot initialize") {
        true => {
            "there is no such file here, or it is no object of eBPF; a classic program is given as bytecode"
        }
        false => "readelf -S lists an object's sections; docs/kinds/bpf.md says what programs may do here",
    }
}

/// `bpf_dump_prog_info` of a program of an object.
pub fn print_object(o: &Options, out: &mut Out) {
    let n = |name| o.str(name).unwrap_or_default();
    let (id, name, tag) = (o.u32("id").unwrap_or(0), n("program"), n("tag"));
    out.open_object(Some("prog"));
    out.num("id", id, format_args!("id {id} "));
    // `BPF_OBJ_NAME_LEN`: 15 characters.
    let name: String = name.chars().take(15).collect();
    out.string("name", &name, format_args!("name {name} "));
    out.string("tag", tag, format_args!("tag {tag} "));
    out.json_num("jited", 1);
    out.text_only(format_args!("jited "));
    out.close_object();
}

/// `bpf_print_ops`.
pub fn print_ops(ops: &[Options], out: &mut Out) {
    out.open_object(Some("bytecode"));
    out.num("length", ops.len(), format_args!("bytecode '{},", ops.len()));
    out.open_array("insns", "");
    for (i, op) in ops.iter().enumerate() {
        let n = |name| op.u32(name).unwrap_or(0);
        let after = if i + 1 == ops.len() { "'" } else { "," };
        out.open_object(None);
        for name in ["code", "jt", "jf"] {
            out.num(name, n(name), format_args!("{} ", n(name)));
        }
        out.num("k", n("k"), format_args!("{}{after}", n("k")));
        out.close_object();
    }
    out.close_array();
    out.close_object();
}
