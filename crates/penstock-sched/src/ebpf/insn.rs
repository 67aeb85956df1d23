//! Instructions of eBPF: their form, and the tag of a program.
//!
//! Follows: RFC 9669; linux v6.12 `kernel/bpf/core.c` `bpf_prog_calc_tag`, and v7.2's, which hashes by SHA-256.

use penstock_model::Kernel;
use sha1::Digest;

/// Bytes of an instruction.
pub(super) const SIZE: usize = 8;

/// Classes: the low three bits of a code.
pub(super) const LD: u8 = 0;
pub(super) const LDX: u8 = 1;
pub(super) const ST: u8 = 2;
pub(super) const STX: u8 = 3;
pub(super) const ALU: u8 = 4;
pub(super) const JMP: u8 = 5;
pub(super) const JMP32: u8 = 6;
pub(super) const ALU64: u8 = 7;

/// Modes of loads and stores: the high three bits of a code.
pub(super) const ABS: u8 = 0x20;
pub(super) const IND: u8 = 0x40;
pub(super) const MEM: u8 = 0x60;
pub(super) const MEMSX: u8 = 0x80;
pub(super) const ATOMIC: u8 = 0xc0;

/// A constant of 64 bits, which stands in two instructions.
pub(super) const LD_IMM64: u8 = 0x18;
pub(super) const CALL: u8 = 0x85;
pub(super) const EXIT: u8 = 0x95;
pub(super) const JA: u8 = 0x05;
/// A jump whose distance is the constant.
pub(super) const JA32: u8 = 0x06;

/// What a source register says of a constant: a map, and a value in one.
pub(super) const PSEUDO_MAP_FD: u8 = 1;
pub(super) const PSEUDO_MAP_VALUE: u8 = 2;
/// What it says of a call: a function of the program's own.
pub(super) const PSEUDO_CALL: u8 = 1;

/// Bits of an atomic operation.
pub(super) const FETCH: i32 = 1;
pub(super) const XCHG: i32 = 0xe1;
pub(super) const CMPXCHG: i32 = 0xf1;

/// One instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Insn {
    pub code: u8,
    pub dst: u8,
    pub src: u8,
    pub off: i16,
    pub imm: i32,
}

impl Insn {
    pub fn class(self) -> u8 {
        self.code & 7
    }
    /// Bytes that a load or a store moves.
    pub fn width(self) -> usize {
        match self.code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        }
    }
    /// Whether the second operand is a register.
    pub fn by_register(self) -> bool {
        self.code & 8 != 0
    }
    /// Where a jump leads, as a distance from the next instruction; `None` for what is no jump.
    pub fn jump(self) -> Option<i64> {
        match self.code {
            JA => Some(i64::from(self.off)),
            JA32 => Some(i64::from(self.imm)),
            CALL | EXIT => None,
            _ if matches!(self.class(), JMP | JMP32) => Some(i64::from(self.off)),
            _ => None,
        }
    }
}

/// The instructions of a program.
pub(super) fn decode(bytes: &[u8]) -> Vec<Insn> {
    let one = |b: &[u8]| Insn {
        code: b[0],
        dst: b[1] & 0xf,
        src: b[1] >> 4,
        off: i16::from_le_bytes([b[2], b[3]]),
        imm: i32::from_le_bytes([b[4], b[5], b[6], b[7]]),
    };
    bytes.chunks_exact(SIZE).map(one).collect()
}

/// `bpf_prog_calc_tag`: the first 8 bytes of a hash over the instructions, in which no map has a number.
pub(super) fn tag(bytes: &[u8], kernel: Kernel) -> [u8; 8] {
    let mut plain = bytes.to_vec();
    let mut second = false;
    for one in plain.chunks_exact_mut(SIZE) {
        let constant = one[0] == LD_IMM64 && matches!(one[1] >> 4, PSEUDO_MAP_FD | PSEUDO_MAP_VALUE);
        if constant || second {
            one[4..8].fill(0);
        }
        second = constant;
    }
    let mut tag = [0; 8];
    if kernel >= Kernel::V7_2 {
        tag.copy_from_slice(&sha2::Sha256::digest(&plain)[..8]);
    } else {
        tag.copy_from_slice(&sha1::Sha1::digest(&plain)[..8]);
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_the_kernel_s() {
        // `w0 = 2; exit`, as 6.12.117 and 6.18.44 showed it.
        let drop = [0xb4, 0, 0, 0, 2, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(tag(&drop, Kernel::V6_12), 0x3fed_6667_85a5_7e53_u64.to_be_bytes());
        assert_eq!(tag(&drop, Kernel::V7_2), 0xd4f8_542f_2b42_fac5_u64.to_be_bytes());
        // The number of a map does not count.
        let map = |number: u8| {
            let mut bytes = vec![0x18, 0x11, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            bytes.extend(drop);
            tag(&bytes, Kernel::V6_12)
        };
        assert_eq!(map(3), map(7));
    }
}
