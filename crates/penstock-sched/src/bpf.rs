//! What the kernel takes for a classic BPF program.
//!
//! Follows: linux v6.12 `net/core/filter.c` `bpf_check_classic`, `check_load_and_stores`.

use penstock_model::Options;

/// Instructions a classic program may have: loads (absolute, indirect, immediate, length, memory), stores, arithmetic, jumps, returns.
const CODES: [u32; 49] = [
    0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x80, 0x00, 0x60, 0x81, 0x01, 0x61, 0xb1, 0x02, 0x03, 0x04, 0x0c,
    0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x94, 0x9c, 0x54, 0x5c, 0x44, 0x4c, 0xa4, 0xac, 0x64, 0x6c, 0x74,
    0x7c, 0x84, 0x05, 0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x06, 0x16, 0x07, 0x87,
];
/// Words of scratch memory.
const MEMWORDS: u32 = 16;
/// Where the kernel's own data is read from: `SKF_AD_OFF` and its end.
const AD_OFF: u32 = 0xffff_f000;
const AD_MAX: u32 = 64;

/// `bpf_check_classic` with `check_load_and_stores`.
pub fn is_valid(ops: &[Options]) -> bool {
    let field = |o: &Options, name| o.u32(name).unwrap_or(0);
    let ops: Vec<[u32; 4]> =
        ops.iter().map(|o| [field(o, "code"), field(o, "jt"), field(o, "jf"), field(o, "k")]).collect();
    let len = ops.len();
    for (pc, &[code, jt, jf, k]) in ops.iter().enumerate() {
        if !CODES.contains(&code) {
            return false;
        }
        let left = len - pc - 1;
        let fits = match code {
            // Division and remainder by a constant 0, shifts of 32 and more.
            0x34 | 0x94 => k != 0,
            0x64 | 0x74 => k < 32,
            // Scratch memory.
            0x60 | 0x61 | 0x02 | 0x03 => k < MEMWORDS,
            0x05 => (k as usize) < left,
            0x15 | 0x1d | 0x25 | 0x2d | 0x35 | 0x3d | 0x45 | 0x4d => {
                (jt as usize) < left && (jf as usize) < left
            }
            // Absolute loads of the kernel's own data.
            0x20 | 0x28 | 0x30 => k < AD_OFF || (k - AD_OFF < AD_MAX && k % 4 == 0),
            _ => true,
        };
        if !fits {
            return false;
        }
    }
    let returns = ops.last().is_some_and(|op| op[0] == 0x06 || op[0] == 0x16);
    returns && loads_follow_stores(&ops)
}

/// Whether memory is written before it is read, on every way there.
fn loads_follow_stores(ops: &[[u32; 4]]) -> bool {
    let mut masks = vec![u16::MAX; ops.len()];
    let mut valid = 0u16;
    for (pc, &[code, jt, jf, k]) in ops.iter().enumerate() {
        valid &= masks[pc];
        match code {
            0x02 | 0x03 => valid |= 1 << k,
            0x60 | 0x61 if valid & 1 << k == 0 => return false,
            0x05 => {
                masks[pc + 1 + k as usize] &= valid;
                valid = u16::MAX;
            }
            0x15 | 0x1d | 0x25 | 0x2d | 0x35 | 0x3d | 0x45 | 0x4d => {
                masks[pc + 1 + jt as usize] &= valid;
                masks[pc + 1 + jf as usize] &= valid;
                valid = u16::MAX;
            }
            _ => {}
        }
    }
    true
}
