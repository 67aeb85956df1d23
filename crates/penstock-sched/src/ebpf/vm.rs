//! The machine that runs a program.
//!
//! An address is a region (its high 32 bits) and an offset. No address of this computer is ever seen by a program, so that runs are the same everywhere.
//!
//! Follows: RFC 9669; linux v6.12 `kernel/bpf/core.c` `___bpf_prog_run`, `net/core/filter.c` `bpf_gen_ld_abs`, `bpf_skb_load_helper_convert_offset`.
//! Differs: all of a packet is linear (`data` to `data_end`), its payload reads as 0, and what is written there is forgotten.

use super::ctx::{self, NoField};
use super::insn::{
    ABS, ALU, ALU64, ATOMIC, CALL, CMPXCHG, EXIT, FETCH, Insn, JA, JA32, JMP, LD, LD_IMM64, LDX, MEMSX,
    PSEUDO_CALL, PSEUDO_MAP_FD, PSEUDO_MAP_VALUE, ST, STX, XCHG,
};
use super::map::Map;
use crate::act::Sent;
use penstock_model::{Rng, Time};
use penstock_packet::Skb;
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::skb::HEADER_MAX;

/// Bytes of the stack of one function, and how many may call one another.
pub(super) const STACK: usize = 512;
pub(super) const FRAMES: usize = 8;
/// Instructions after which the kernel's verifier gives up on a program.
const STEPS_MAX: u32 = 1_000_000;
/// Most tail calls (`MAX_TAIL_CALL_CNT`).
const TAIL_CALLS: u32 = 33;

/// Regions.
const CTX: u32 = 1;
const STACKS: u32 = 2;
const PACKET: u32 = 3;
/// Maps themselves, from here on, and the values of each.
const MAPS: u32 = 0x1000;
const VALUES: u32 = 0x2000;
/// Where the packet begins within its region, so that what lies before it is there to be compared.
const START: u64 = 0x1_0000;

/// `SKF_NET_OFF`, `SKF_LL_OFF`.
const NET_OFF: i32 = -0x10_0000;
const LL_OFF: i32 = -0x20_0000;

/// Why a program does not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// It does what the kernel's verifier lets no program do.
    Refused(&'static str),
    /// It asks for what is not simulated.
    Missing(&'static str),
}

/// What is lent to a program for one packet.
pub struct Lent<'a> {
    /// The present moment.
    pub now: Time,
    /// The device's dice.
    pub rng: &'a mut Rng,
    /// Where copies go that are sent elsewhere.
    pub sent: &'a mut Vec<Sent>,
    /// The device that `redirect` has named, and whether the packet is to be received there.
    pub redirect: &'a mut Option<(u32, bool)>,
}

/// A program at work on a packet.
pub(super) struct Vm<'a, 'b> {
    pub code: &'a [Insn],
    pub maps: &'a mut [Map],
    pub stack: &'a mut [u8],
    pub skb: &'a mut Skb,
    pub lent: &'a mut Lent<'b>,
    /// The packet's headers, `known` bytes of them.
    pub bytes: [u8; HEADER_MAX],
    pub known: usize,
    /// They were changed.
    pub dirty: bool,
    pub cb: [u8; 20],
    pub classid: u16,
    pub regs: [u64; 11],
}

impl<'a, 'b> Vm<'a, 'b> {
    /// Before its first instruction.
    pub fn new(
        code: &'a [Insn],
        maps: &'a mut [Map],
        stack: &'a mut [u8],
        skb: &'a mut Skb,
        lent: &'a mut Lent<'b>,
        classid: u16,
    ) -> Vm<'a, 'b> {
        let (bytes, known) = ([0; HEADER_MAX], 0);
        let mut vm = Vm {
            code,
            maps,
            stack,
            skb,
            lent,
            bytes,
            known,
            dirty: false,
            cb: [0; 20],
            classid,
            regs: [0; 11],
        };
        vm.look();
        vm
    }
    /// Writes the packet's headers out anew.
    pub fn look(&mut self) {
        self.known = self.skb.checked_header_bytes(&mut self.bytes).min(self.skb.len as usize);
        self.bytes[self.known..].fill(0);
    }
    /// Takes over into the packet what was changed of its bytes.
    pub fn settle(&mut self) {
        if std::mem::take(&mut self.dirty) {
            self.skb.set_checked_header_bytes(&self.bytes[..self.known]);
        }
    }

    /// Runs it to its end: what it answers.
    pub fn run(&mut self) -> Result<u64, Fault> {
        let mut returns = [(0usize, [0u64; 4]); FRAMES];
        let (mut depth, mut pc, mut steps, mut tails) = (0usize, 0usize, 0u32, 0u32);
        self.regs[1] = u64::from(CTX) << 32;
        self.regs[10] = frame(0);
        loop {
            steps += 1;
            if steps > STEPS_MAX {
                return Err(Fault::Refused("BPF program is too large. Processed 1000001 insn"));
            }
            let insn = self.code[pc];
            pc += 1;
            let (dst, src) = (usize::from(insn.dst), usize::from(insn.src));
            match insn.class() {
                ALU64 => self.regs[dst] = self.wide(insn),
                ALU => self.regs[dst] = self.narrow(insn),
                LDX => {
                    let at = self.regs[src].wrapping_add_signed(i64::from(insn.off));
                    let value = self.load(at, insn.width())?;
                    let signed = insn.code & 0xe0 == MEMSX;
                    self.regs[dst] = if signed { extended(value, 8 * insn.width() as u32) } else { value };
                }
                ST => {
                    let at = self.regs[dst].wrapping_add_signed(i64::from(insn.off));
                    self.store(at, insn.width(), i64::from(insn.imm) as u64)?;
                }
                STX if insn.code & 0xe0 == ATOMIC => self.atomic(insn)?,
                STX => {
                    let at = self.regs[dst].wrapping_add_signed(i64::from(insn.off));
                    self.store(at, insn.width(), self.regs[src])?;
                }
                LD if insn.code == LD_IMM64 => {
                    let high = self.code[pc].imm as u32;
                    pc += 1;
                    self.regs[dst] = match insn.src {
                        PSEUDO_MAP_FD => u64::from(MAPS + insn.imm as u32) << 32,
                        PSEUDO_MAP_VALUE => u64::from(VALUES + insn.imm as u32) << 32 | u64::from(high),
                        _ => u64::from(high) << 32 | u64::from(insn.imm as u32),
                    };
                }
                LD => {
                    if self.regs[6] >> 32 != u64::from(CTX) {
                        return Err(Fault::Refused("at the time of BPF_LD_ABS|IND R6 != pointer to skb"));
                    }
                    let by = if insn.code & 0xe0 == ABS { 0 } else { self.regs[src] as i32 };
                    let Some(value) = self.direct(insn.imm.wrapping_add(by), insn.width()) else {
                        return Ok(0);
                    };
                    self.regs[0] = value;
                }
                _ => match insn.code {
                    EXIT if depth == 0 => return Ok(self.regs[0]),
                    EXIT => {
                        depth -= 1;
                        let (back, saved) = returns[depth];
                        pc = back;
                        self.regs[6..10].copy_from_slice(&saved);
                        self.regs[10] = frame(depth);
                    }
                    CALL if insn.src == PSEUDO_CALL => {
                        if depth + 1 >= FRAMES {
                            return Err(Fault::Refused("the call stack of 9 frames is too deep !"));
                        }
                        let mut saved = [0; 4];
                        saved.copy_from_slice(&self.regs[6..10]);
                        returns[depth] = (pc, saved);
                        depth += 1;
                        self.regs[10] = frame(depth);
                        pc = (pc as i64 + i64::from(insn.imm)) as usize;
                    }
                    CALL if insn.imm == 12 => {
                        let again = self.tail_call()? && tails < TAIL_CALLS;
                        (tails, pc) = if again { (tails + 1, 0) } else { (tails, pc) };
                    }
                    CALL => self.regs[0] = self.call(insn.imm)?,
                    JA => pc = (pc as i64 + i64::from(insn.off)) as usize,
                    JA32 => pc = (pc as i64 + i64::from(insn.imm)) as usize,
                    _ if self.jumps(insn) => pc = (pc as i64 + i64::from(insn.off)) as usize,
                    _ => {}
                },
            }
        }
    }

    /// `bpf_tail_call`: whether the program begins anew. It stands in no array but its own.
    fn tail_call(&mut self) -> Result<bool, Fault> {
        let map = self.map(self.regs[2])?;
        if !self.maps[map].is_programs() {
            return Err(Fault::Refused("cannot pass map_type into func bpf_tail_call#12"));
        }
        let there = self.maps[map].has_program(self.regs[3] as u32);
        if there {
            self.regs[1] = u64::from(CTX) << 32;
        }
        Ok(there)
    }

    /// The second operand.
    fn operand(&self, insn: Insn) -> u64 {
        if insn.by_register() { self.regs[usize::from(insn.src)] } else { i64::from(insn.imm) as u64 }
    }
    /// Arithmetic of 64 bits.
    fn wide(&self, insn: Insn) -> u64 {
        let (a, b) = (self.regs[usize::from(insn.dst)], self.operand(insn));
        match insn.code & 0xf0 {
            0x00 => a.wrapping_add(b),
            0x10 => a.wrapping_sub(b),
            0x20 => a.wrapping_mul(b),
            0x30 if insn.off == 1 => match b as i64 {
                0 => 0,
                b => (a as i64).wrapping_div(b) as u64,
            },
            0x30 => a.checked_div(b).unwrap_or(0),
            0x40 => a | b,
            0x50 => a & b,
            0x60 => a.wrapping_shl(b as u32),
            0x70 => a.wrapping_shr(b as u32),
            0x80 => a.wrapping_neg(),
            0x90 if insn.off == 1 => match b as i64 {
                0 => a,
                b => (a as i64).wrapping_rem(b) as u64,
            },
            0x90 => a.checked_rem(b).unwrap_or(a),
            0xa0 => a ^ b,
            0xb0 if insn.off != 0 => extended(b, insn.off as u32),
            0xb0 => b,
            0xc0 => (a as i64).wrapping_shr(b as u32) as u64,
            _ => match insn.imm {
                16 => u64::from((a as u16).swap_bytes()),
                32 => u64::from((a as u32).swap_bytes()),
                _ => a.swap_bytes(),
            },
        }
    }
    /// Arithmetic of 32 bits; of the order of bytes, of up to 64, in [`ordered`].
    fn narrow(&self, insn: Insn) -> u64 {
        let (a, b) = (self.regs[usize::from(insn.dst)] as u32, self.operand(insn) as u32);
        u64::from(match insn.code & 0xf0 {
            0x00 => a.wrapping_add(b),
            0x10 => a.wrapping_sub(b),
            0x20 => a.wrapping_mul(b),
            0x30 if insn.off == 1 => match b as i32 {
                0 => 0,
                b => (a as i32).wrapping_div(b) as u32,
            },
            0x30 => a.checked_div(b).unwrap_or(0),
            0x40 => a | b,
            0x50 => a & b,
            0x60 => a.wrapping_shl(b),
            0x70 => a.wrapping_shr(b),
            0x80 => a.wrapping_neg(),
            0x90 if insn.off == 1 => match b as i32 {
                0 => a,
                b => (a as i32).wrapping_rem(b) as u32,
            },
            0x90 => a.checked_rem(b).unwrap_or(a),
            0xa0 => a ^ b,
            0xb0 if insn.off != 0 => extended(u64::from(b), insn.off as u32) as u32,
            0xb0 => b,
            0xc0 => (a as i32).wrapping_shr(b) as u32,
            _ => return ordered(self.regs[usize::from(insn.dst)], insn),
        })
    }
    /// Whether a jump with a condition is taken.
    fn jumps(&self, insn: Insn) -> bool {
        let (mut a, mut b) = (self.regs[usize::from(insn.dst)], self.operand(insn));
        let (signed_a, signed_b);
        if insn.class() == JMP {
            (signed_a, signed_b) = (a as i64, b as i64);
        } else {
            (signed_a, signed_b) = (i64::from(a as i32), i64::from(b as i32));
            (a, b) = (u64::from(a as u32), u64::from(b as u32));
        }
        match insn.code & 0xf0 {
            0x10 => a == b,
            0x20 => a > b,
            0x30 => a >= b,
            0x40 => a & b != 0,
            0x50 => a != b,
            0x60 => signed_a > signed_b,
            0x70 => signed_a >= signed_b,
            0xa0 => a < b,
            0xb0 => a <= b,
            0xc0 => signed_a < signed_b,
            _ => signed_a <= signed_b,
        }
    }
    fn atomic(&mut self, insn: Insn) -> Result<(), Fault> {
        let (src, width) = (usize::from(insn.src), insn.width());
        let at = self.regs[usize::from(insn.dst)].wrapping_add_signed(i64::from(insn.off));
        if matches!((at >> 32) as u32, CTX | PACKET) {
            return Err(Fault::Refused("BPF_ATOMIC stores into ctx or pkt is not allowed"));
        }
        let old = self.load(at, width)?;
        let with = self.regs[src];
        let narrow = |value: u64| if width == 4 { u64::from(value as u32) } else { value };
        let new = match insn.imm & !FETCH {
            0x00 => old.wrapping_add(with),
            0x40 => old | with,
            0x50 => old & with,
            0xa0 => old ^ with,
            _ if insn.imm == XCHG => with,
            _ if old == narrow(self.regs[0]) => with,
            _ => old,
        };
        self.store(at, width, new)?;
        if insn.imm == CMPXCHG {
            self.regs[0] = old;
        } else if insn.imm & FETCH != 0 {
            self.regs[src] = old;
        }
        Ok(())
    }

    /// `BPF_LD | BPF_ABS`: in the order of the wire; `None` beyond the packet, which ends the program.
    fn direct(&self, at: i32, width: usize) -> Option<u64> {
        let at = match at {
            0.. => at,
            NET_OFF.. => at - NET_OFF + ETH_HLEN as i32,
            LL_OFF.. => at - LL_OFF,
            _ => return None,
        } as usize;
        if at + width > self.skb.len as usize {
            return None;
        }
        Some((at..at + width).fold(0, |word, i| word << 8 | u64::from(self.byte(i))))
    }
    /// A byte of the packet, which is there.
    fn byte(&self, at: usize) -> u8 {
        self.bytes[..self.known].get(at).copied().unwrap_or(0)
    }

    /// The map that a pointer names.
    pub fn map(&self, pointer: u64) -> Result<usize, Fault> {
        let at = ((pointer >> 32) as u32).wrapping_sub(MAPS) as usize;
        if at < self.maps.len() && pointer as u32 == 0 {
            Ok(at)
        } else {
            Err(Fault::Refused("R1 type=scalar expected=map_ptr"))
        }
    }
    /// A pointer to the value of a map that begins so far within its values.
    pub fn value(map: usize, at: usize) -> u64 {
        u64::from(VALUES + map as u32) << 32 | at as u64
    }

    fn load(&self, at: u64, width: usize) -> Result<u64, Fault> {
        if (at >> 32) as u32 == CTX {
            return self.field(at as u32, width as u32);
        }
        let mut bytes = [0; 8];
        self.read(at, &mut bytes[..width])?;
        Ok(u64::from_le_bytes(bytes))
    }
    fn store(&mut self, at: u64, width: usize, value: u64) -> Result<(), Fault> {
        if (at >> 32) as u32 == CTX {
            return self.set_field(at as u32, width as u32, value);
        }
        self.write(at, &value.to_le_bytes()[..width])
    }

    fn field(&self, at: u32, width: u32) -> Result<u64, Fault> {
        let packet = u64::from(PACKET) << 32 | START;
        match at {
            ctx::DATA | ctx::DATA_META if width == 4 => return Ok(packet),
            ctx::DATA_END if width == 4 => return Ok(packet + u64::from(self.skb.len)),
            _ => {}
        }
        if let Some(part) = within(&ctx::CB, at, width) {
            let mut bytes = [0; 8];
            bytes[..width as usize].copy_from_slice(&self.cb[part]);
            return Ok(u64::from_le_bytes(bytes));
        }
        if at == ctx::CLASSID && width <= 4 {
            return Ok(u64::from(self.classid) & ((1 << (8 * width)) - 1));
        }
        ctx::read(self.skb, at, width).map_err(no_field)
    }
    fn set_field(&mut self, at: u32, width: u32, value: u64) -> Result<(), Fault> {
        if let Some(part) = within(&ctx::CB, at, width) {
            self.cb[part].copy_from_slice(&value.to_le_bytes()[..width as usize]);
            return Ok(());
        }
        if at == ctx::CLASSID && width == 4 {
            self.classid = value as u16;
            return Ok(());
        }
        ctx::write(self.skb, at, width, value).map_err(no_field)
    }

    /// Bytes from memory that programs may read.
    pub fn read(&self, at: u64, out: &mut [u8]) -> Result<(), Fault> {
        let (region, offset) = place(at)?;
        let end = offset + out.len();
        match region {
            STACKS => out.copy_from_slice(self.stack.get(offset..end).ok_or(STACK_FAULT)?),
            PACKET => {
                let start = offset.checked_sub(START as usize).ok_or(PACKET_FAULT)?;
                if start + out.len() > self.skb.len as usize {
                    return Err(PACKET_FAULT);
                }
                for (i, byte) in out.iter_mut().enumerate() {
                    *byte = self.byte(start + i);
                }
            }
            _ => {
                let map = self.values_of(region, offset, out.len())?;
                out.copy_from_slice(&self.maps[map].values()[offset..end]);
            }
        }
        Ok(())
    }
    /// Bytes to memory that programs may write.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        let (region, offset) = place(at)?;
        match region {
            STACKS => {
                let place = self.stack.get_mut(offset..offset + bytes.len()).ok_or(STACK_FAULT)?;
                place.copy_from_slice(bytes);
            }
            PACKET => {
                let start = offset.checked_sub(START as usize).ok_or(PACKET_FAULT)?;
                if start + bytes.len() > self.skb.len as usize {
                    return Err(PACKET_FAULT);
                }
                self.put(start, bytes);
            }
            _ => {
                let map = self.values_of(region, offset, bytes.len())?;
                if self.maps[map].frozen {
                    return Err(Fault::Refused("write into map forbidden"));
                }
                self.maps[map].values_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
        Ok(())
    }
    /// Bytes into the packet, which holds them; into its payload, they are forgotten.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate().filter(|(i, _)| at + i < self.known) {
            self.dirty |= self.bytes[at + i] != *byte;
            self.bytes[at + i] = *byte;
        }
    }
    /// Bytes of the packet that are there.
    pub fn take(&self, at: usize, out: &mut [u8]) {
        out.iter_mut().enumerate().for_each(|(i, byte)| *byte = self.byte(at + i));
    }
    fn values_of(&self, region: u32, offset: usize, len: usize) -> Result<usize, Fault> {
        let map = region.wrapping_sub(VALUES) as usize;
        let there = self.maps.get(map).ok_or(Fault::Refused("invalid mem access 'scalar'"))?;
        if there.holds(offset, len) { Ok(map) } else { Err(Fault::Refused("invalid access to map value")) }
    }
}

const STACK_FAULT: Fault = Fault::Refused("invalid read from stack");
const PACKET_FAULT: Fault = Fault::Refused("invalid access to packet");

fn no_field(why: NoField) -> Fault {
    match why {
        NoField::Refused => Fault::Refused("invalid bpf_context access"),
        NoField::Missing(what) => Fault::Missing(what),
    }
}

/// The part of a range that `width` bytes at `at` are, counted from its beginning.
fn within(range: &std::ops::Range<u32>, at: u32, width: u32) -> Option<std::ops::Range<usize>> {
    let fits = at >= range.start && at + width <= range.end && at.is_multiple_of(width);
    fits.then(|| (at - range.start) as usize..(at - range.start + width) as usize)
}

/// The parts of an address; nothing is so far into a region that it could not be counted in 32 bits.
fn place(at: u64) -> Result<(u32, usize), Fault> {
    let offset = at as u32;
    if offset > i32::MAX as u32 {
        return Err(Fault::Refused("invalid mem access 'scalar'"));
    }
    Ok(((at >> 32) as u32, offset as usize))
}

/// The top of the stack of a function so deep within others.
fn frame(depth: usize) -> u64 {
    u64::from(STACKS) << 32 | (STACK * (depth + 1)) as u64
}

/// The low `bits` of a number, with their sign.
fn extended(value: u64, bits: u32) -> u64 {
    let unused = 64 - bits;
    ((value << unused) as i64 >> unused) as u64
}

/// `BPF_END`: the low bits in another order, or in this one.
fn ordered(value: u64, insn: Insn) -> u64 {
    let swapped = insn.by_register();
    match insn.imm {
        16 => u64::from(if swapped { (value as u16).swap_bytes() } else { value as u16 }),
        32 => u64::from(if swapped { (value as u32).swap_bytes() } else { value as u32 }),
        _ if swapped => value.swap_bytes(),
        _ => value,
    }
}
