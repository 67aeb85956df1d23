//! Classic BPF programs as tc reads and prints them.
//!
//! Follows: iproute2 6.1.0 `lib/bpf_legacy.c` `bpf_ops_parse`, `bpf_print_ops`.

use super::num;
use crate::show::Out;
use penstock_model::Options;

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
