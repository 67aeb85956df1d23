//! What the kernel surely refuses of a program, as far as its instructions alone tell.
//!
//! Whatever is refused here the kernel refuses; what it refuses for the values that registers may have is found by trial ([`super::trial`]).
//!
//! Follows: linux v6.12 `kernel/bpf/verifier.c` `check_subprogs`, `check_cfg`, `check_alu_op`, `check_helper_call`, `resolve_pseudo_ldimm64`.

use super::helper;
use super::insn::{
    ABS, ALU, ALU64, ATOMIC, CALL, CMPXCHG, EXIT, FETCH, IND, Insn, JA, JA32, JMP, JMP32, LD, LD_IMM64, LDX,
    MEM, MEMSX, PSEUDO_CALL, PSEUDO_MAP_FD, PSEUDO_MAP_VALUE, ST, STX, XCHG,
};
use penstock_model::KernelError;

/// A loop that may end at any time.
const MAY_GOTO: u8 = 0xe5;
/// Most instructions of a program.
const INSNS_MAX: usize = 1_000_000;

/// Why a program is not loaded: the kernel's errno, and the last line of its verifier's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The errno.
    pub errno: i32,
    /// The line.
    pub log: String,
}

impl Refusal {
    pub(super) fn new(errno: i32, log: impl Into<String>) -> Refusal {
        Refusal { errno, log: log.into() }
    }
    fn invalid(log: impl Into<String>) -> Refusal {
        Refusal::new(KernelError::EINVAL, log)
    }
    fn denied(log: impl Into<String>) -> Refusal {
        Refusal::new(KernelError::EACCES, log)
    }
}

/// Checks a program with `maps` maps; answers what it has that is not simulated, where there is any.
pub(super) fn check(code: &[Insn], maps: usize, license: &str) -> Result<Option<&'static str>, Refusal> {
    if code.is_empty() || code.len() > INSNS_MAX {
        return Err(Refusal::new(KernelError::E2BIG, "program is too large"));
    }
    let mut missing = None;
    let mut at = 0;
    while at < code.len() {
        let insn = code[at];
        form(insn, at, code, maps)?;
        if insn.code == CALL && insn.src == 0 {
            missing = missing.or(called(insn.imm, license)?);
        }
        if insn.code == CALL && insn.src > PSEUDO_CALL {
            missing = missing.or(Some("bpf with kfuncs"));
        }
        if insn.code == MAY_GOTO {
            missing = missing.or(Some("bpf with may_goto"));
        }
        at += if insn.code == LD_IMM64 { 2 } else { 1 };
    }
    let ends = |insn: &Insn| matches!(insn.code, EXIT | JA | JA32);
    if !code.last().is_some_and(ends) {
        return Err(Refusal::invalid("last insn is not an exit or jmp"));
    }
    registers(code)?;
    Ok(missing)
}

/// A call of a helper; answers what is said where it is not simulated.
fn called(id: i32, license: &str) -> Result<Option<&'static str>, Refusal> {
    if !(1..=helper::LAST).contains(&id) {
        return Err(Refusal::invalid(format!("invalid func unknown#{id}")));
    }
    let Some(found) = helper::find(id) else {
        return Err(Refusal::invalid(format!("program of this type cannot use helper #{id}")));
    };
    if found.gpl && !helper::is_gpl(license) {
        return Err(Refusal::invalid("cannot call GPL-restricted function from non-GPL compatible program"));
    }
    Ok(found.missing)
}

/// The form of one instruction.
fn form(insn: Insn, at: usize, code: &[Insn], maps: usize) -> Result<(), Refusal> {
    let unknown = || Err(Refusal::invalid(format!("unknown opcode {:02x}", insn.code)));
    if insn.dst > 10 {
        return Err(Refusal::invalid(format!("R{} is invalid", insn.dst)));
    }
    let names_source = !matches!(insn.code, LD_IMM64 | CALL);
    if insn.src > 10 && names_source {
        return Err(Refusal::invalid(format!("R{} is invalid", insn.src)));
    }
    match insn.class() {
        ALU | ALU64 => arithmetic(insn)?,
        LDX if matches!(insn.code & 0xe0, MEM | MEMSX) && insn.code != (LDX | MEMSX | 0x18) => {}
        ST if insn.code & 0xe0 == MEM => {}
        STX if insn.code & 0xe0 == MEM => {}
        STX if insn.code & 0xe0 == ATOMIC && matches!(insn.width(), 4 | 8) => {
            let plain = matches!(insn.imm & !FETCH, 0x00 | 0x40 | 0x50 | 0xa0);
            if !plain && !matches!(insn.imm, XCHG | CMPXCHG) {
                return Err(Refusal::invalid(format!(
                    "BPF_ATOMIC uses invalid atomic opcode {:02x}",
                    insn.imm
                )));
            }
        }
        LD if insn.code == LD_IMM64 => {
            let second = code.get(at + 1).filter(|i| i.code == 0 && i.dst == 0 && i.src == 0 && i.off == 0);
            if second.is_none() {
                return Err(Refusal::invalid("invalid bpf_ld_imm64 insn"));
            }
            let map = matches!(insn.src, PSEUDO_MAP_FD | PSEUDO_MAP_VALUE);
            if map && usize::try_from(insn.imm).is_ok_and(|n| n >= maps) {
                return Err(Refusal::new(
                    KernelError::EBADF,
                    format!("fd {} is not pointing to valid bpf_map", insn.imm),
                ));
            }
        }
        LD if matches!(insn.code & 0xe0, ABS | IND) && insn.width() != 8 => {}
        JMP | JMP32 => {
            let own = insn.code & 0xf0;
            let there = match insn.code {
                CALL | EXIT | JA | JA32 | MAY_GOTO => true,
                _ => matches!(own, 0x10..=0x70 | 0xa0..=0xd0) && !matches!(insn.code & 0xf8, 0x88 | 0x98),
            };
            if !there {
                return unknown();
            }
            let to = insn.jump().map(|by| at as i64 + 1 + by);
            let call =
                (insn.code == CALL && insn.src == PSEUDO_CALL).then(|| at as i64 + 1 + i64::from(insn.imm));
            let inside = |to: i64| usize::try_from(to).is_ok_and(|to| to < code.len());
            if let Some(to) = to.or(call).filter(|&to| !inside(to)) {
                return Err(Refusal::invalid(format!("jump out of range from insn {at} to {to}")));
            }
            if let Some(to) = to.or(call)
                && code[to as usize].code == 0
            {
                return Err(Refusal::invalid(format!("jump into the middle of ldimm64 insn {to}")));
            }
        }
        _ => return unknown(),
    }
    Ok(())
}

/// `check_alu_op`: constants that make no sense, and the frame pointer as a destination.
fn arithmetic(insn: Insn) -> Result<(), Refusal> {
    let wide = insn.class() == ALU64;
    let bits = if wide { 64 } else { 32 };
    let op = insn.code & 0xf0;
    let fits = match op {
        0xd0 => matches!(insn.imm, 16 | 32 | 64) && (!wide || !insn.by_register()),
        0x80 => !insn.by_register(),
        0xe0 | 0xf0 => false,
        _ => true,
    };
    if !fits {
        return Err(Refusal::invalid(format!("unknown opcode {:02x}", insn.code)));
    }
    if insn.dst == 10 {
        return Err(Refusal::denied("frame pointer is read only"));
    }
    if matches!(op, 0x30 | 0x90) && !insn.by_register() && insn.imm == 0 {
        return Err(Refusal::invalid("div by zero"));
    }
    if matches!(op, 0x60 | 0x70 | 0xc0) && !insn.by_register() && !(0..bits).contains(&insn.imm) {
        return Err(Refusal::invalid(format!("invalid shift {}", insn.imm)));
    }
    Ok(())
}

/// Whether every register is written before it is read, on every way there; and every instruction is come to.
fn registers(code: &[Insn]) -> Result<(), Refusal> {
    // Of each instruction: the registers that hold something on all ways to it.
    let mut held: Vec<Option<u16>> = vec![None; code.len()];
    let mut open = vec![(0usize, 1u16 << 1 | 1 << 10)];
    while let Some((at, mask)) = open.pop() {
        let before = held[at];
        let now = before.map_or(mask, |b| b & mask);
        if before == Some(now) {
            continue;
        }
        held[at] = Some(now);
        let insn = code[at];
        let after = step(insn, now)?;
        let next = at + if insn.code == LD_IMM64 { 2 } else { 1 };
        let on = !matches!(insn.code, EXIT | JA | JA32);
        if let Some(by) = insn.jump() {
            open.push(((at as i64 + 1 + by) as usize, after));
        }
        if insn.code == CALL && insn.src == PSEUDO_CALL {
            // A function has its arguments, and its frame.
            open.push(((at as i64 + 1 + i64::from(insn.imm)) as usize, now & 0x3e | 1 << 10));
        }
        if on {
            if next >= code.len() {
                return Err(Refusal::invalid(format!("jump out of range from insn {at} to {next}")));
            }
            open.push((next, after));
        }
    }
    let mut at = 0;
    while at < code.len() {
        if held[at].is_none() {
            return Err(Refusal::invalid(format!("unreachable insn {at}")));
        }
        at += if code[at].code == LD_IMM64 { 2 } else { 1 };
    }
    Ok(())
}

/// The registers that hold something behind an instruction.
fn step(insn: Insn, held: u16) -> Result<u16, Refusal> {
    let reads = |register: u8| match held & 1 << register {
        0 => Err(Refusal::denied(format!("R{register} !read_ok"))),
        _ => Ok(()),
    };
    let mut after = held;
    match insn.class() {
        ALU | ALU64 => {
            let op = insn.code & 0xf0;
            if insn.by_register() && op != 0xd0 {
                reads(insn.src)?;
            }
            if op != 0xb0 {
                reads(insn.dst)?;
            }
            after |= 1 << insn.dst;
        }
        LD if insn.code == LD_IMM64 => after |= 1 << insn.dst,
        LD => {
            reads(6)?;
            if insn.code & 0xe0 == IND {
                reads(insn.src)?;
            }
            after = after & !0x3e | 1;
        }
        LDX => {
            reads(insn.src)?;
            after |= 1 << insn.dst;
        }
        ST => reads(insn.dst)?,
        STX => {
            reads(insn.dst)?;
            reads(insn.src)?;
            if insn.code & 0xe0 == ATOMIC && insn.imm == CMPXCHG {
                reads(0)?;
            }
            if insn.code & 0xe0 == ATOMIC && insn.imm != CMPXCHG && insn.imm & FETCH != 0 {
                after |= 1 << insn.src;
            }
        }
        _ => match insn.code {
            CALL => {
                let args = if insn.src == 0 { helper::find(insn.imm).map_or(0, |h| h.args) } else { 0 };
                for register in 1..=args {
                    reads(register)?;
                }
                after = after & !0x3e | 1;
            }
            EXIT => reads(0)?,
            JA | JA32 | MAY_GOTO => {}
            _ => {
                reads(insn.dst)?;
                if insn.by_register() {
                    reads(insn.src)?;
                }
            }
        },
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> Insn {
        Insn { code, dst, src, off, imm }
    }
    const RETURN: Insn = Insn { code: EXIT, dst: 0, src: 0, off: 0, imm: 0 };

    #[track_caller]
    fn refused(code: &[Insn], log: &str) {
        assert_eq!(check(code, 0, "").map_err(|r| r.log), Err(log.to_owned()));
    }

    #[test]
    fn what_is_surely_refused() {
        let zero = insn(0xb7, 0, 0, 0, 0);
        assert_eq!(check(&[zero, RETURN], 0, ""), Ok(None));
        refused(&[RETURN], "R0 !read_ok");
        refused(&[zero], "last insn is not an exit or jmp");
        refused(&[insn(0xbf, 0, 3, 0, 0), RETURN], "R3 !read_ok");
        refused(&[insn(0xbf, 0, 11, 0, 0), RETURN], "R11 is invalid");
        refused(&[insn(0xb7, 10, 0, 0, 0), RETURN], "frame pointer is read only");
        refused(&[zero, insn(0x15, 0, 0, 5, 0), RETURN], "jump out of range from insn 1 to 7");
        refused(&[zero, insn(0x05, 0, 0, 1, 0), zero, RETURN], "unreachable insn 2");
        refused(&[zero, insn(0x37, 0, 0, 0, 0), RETURN], "div by zero");
        refused(&[zero, insn(0x64, 0, 0, 0, 32), RETURN], "invalid shift 32");
        refused(&[zero, insn(0xff, 0, 0, 0, 0), RETURN], "unknown opcode ff");
        refused(
            &[insn(LD_IMM64, 1, 1, 0, 3), insn(0, 0, 0, 0, 0), zero, RETURN],
            "fd 3 is not pointing to valid bpf_map",
        );
        // A register that only one of two ways fills.
        refused(&[insn(0x15, 1, 0, 1, 0), insn(0xb7, 0, 0, 0, 1), RETURN], "R0 !read_ok");
        // What a call leaves of its arguments.
        refused(&[insn(CALL, 0, 0, 0, 7), insn(0xbf, 0, 1, 0, 0), RETURN], "R1 !read_ok");
    }

    #[test]
    fn helpers_are_there_are_missing_or_are_none_of_theirs() {
        let calls = |id: i32, license: &str| check(&[insn(CALL, 0, 0, 0, id), RETURN], 0, license);
        assert_eq!(calls(5, ""), Ok(None));
        assert_eq!(calls(35, ""), Ok(Some("bpf with the helper get_current_task")));
        let log = |id, license: &str| calls(id, license).unwrap_err().log;
        assert_eq!(log(44, "GPL"), "program of this type cannot use helper #44");
        assert_eq!(log(9999, "GPL"), "invalid func unknown#9999");
        let printk = [insn(0xb7, 1, 0, 0, 0), insn(0xb7, 2, 0, 0, 0), insn(CALL, 0, 0, 0, 6), RETURN];
        assert_eq!(check(&printk, 0, "Dual BSD/GPL"), Ok(None));
        assert!(check(&printk, 0, "MIT").unwrap_err().log.starts_with("cannot call GPL-restricted function"));
    }
}
