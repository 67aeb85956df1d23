//! Classic BPF programs: what the kernel takes for one, and what one answers to a packet.
//!
//! Follows: linux v6.12 `net/core/filter.c` `bpf_check_classic`, `check_load_and_stores`, `bpf_convert_filter`,
//! `convert_bpf_extensions`, `bpf_skb_load_helper_convert_offset`; `net/core/flow_dissector.c` `__skb_get_poff`.
//! Differs: payload reads as 0; a search for netlink attributes (`SKF_AD_NLATTR`) finds none: [`Program::is_exact`] says so.

use penstock_model::{Options, Rng};
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::skb::HEADER_MAX;
use penstock_packet::{L3, L4, Skb};

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

/// Where offsets count from the network header, and from the link header (`SKF_NET_OFF`, `SKF_LL_OFF`).
const NET_OFF: i32 = -0x10_0000;
const LL_OFF: i32 = -0x20_0000;
/// `SKF_AD_NLATTR`, `SKF_AD_NLATTR_NEST`.
const NLATTR: [u32; 2] = [12, 16];

/// A program that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program(Box<[[u32; 4]]>);

impl Program {
    /// The program of a list of instructions with `code`, `jt`, `jf` and `k`; `None` where the kernel refuses it.
    pub fn new(ops: &[Options]) -> Option<Program> {
        let field = |o: &Options, name| o.u32(name).unwrap_or(0);
        let ops: Box<[[u32; 4]]> =
            ops.iter().map(|o| [field(o, "code"), field(o, "jt"), field(o, "jf"), field(o, "k")]).collect();
        (!ops.is_empty() && is_valid(&ops)).then_some(Program(ops))
    }
    /// Whether it asks for nothing that is not here.
    pub fn is_exact(&self) -> bool {
        let asks = |op: &[u32; 4]| {
            matches!(op[0], 0x20 | 0x28 | 0x30) && NLATTR.contains(&op[3].wrapping_sub(AD_OFF))
        };
        !self.0.iter().any(asks)
    }
    /// What it answers: 0 as soon as it reads beyond the packet or divides by 0. Its bytes begin with the link header.
    pub fn run(&self, skb: &Skb, rng: &mut Rng) -> u32 {
        let mut bytes = [0; HEADER_MAX];
        let len = skb.header_bytes(&mut bytes);
        let view = View { skb, bytes: &bytes[..len] };
        self.steps(&view, rng).unwrap_or(0)
    }
    fn steps(&self, view: &View<'_>, rng: &mut Rng) -> Option<u32> {
        let (mut a, mut x, mut pc) = (0u32, 0u32, 0usize);
        let mut memory = [0u32; MEMWORDS as usize];
        loop {
            let [code, jt, jf, k] = self.0[pc];
            pc += 1;
            let word = |k: u32| memory[(k % MEMWORDS) as usize];
            match code {
                0x06 => return Some(k),
                0x16 => return Some(a),
                0x20 | 0x28 | 0x30 if (AD_OFF..AD_OFF + AD_MAX).contains(&k) => {
                    a = view.own(k - AD_OFF, a, x, rng);
                }
                0x20 | 0x28 | 0x30 => a = view.load(k as i32, width(code))?,
                0x40 | 0x48 | 0x50 => a = view.load(x.wrapping_add(k) as i32, width(code))?,
                0x80 => a = view.skb.len,
                0x81 => x = view.skb.len,
                0x00 => a = k,
                0x01 => x = k,
                0x60 => a = word(k),
                0x61 => x = word(k),
                0xb1 => x = (view.load(k as i32, 1)? & 0xf) << 2,
                0x02 => memory[(k % MEMWORDS) as usize] = a,
                0x03 => memory[(k % MEMWORDS) as usize] = x,
                0x05 => pc += k as usize,
                0x07 => x = a,
                0x87 => a = x,
                _ if code & 7 == 5 => {
                    let with = if code & 8 == 0 { k } else { x };
                    let holds = match code & 0xf0 {
                        0x10 => a == with,
                        0x20 => a > with,
                        0x30 => a >= with,
                        _ => a & with != 0,
                    };
                    pc += if holds { jt } else { jf } as usize;
                }
                _ => a = arithmetic(code & 0xf0, a, if code & 8 == 0 { k } else { x })?,
            }
        }
    }
}

/// Bytes of a load.
fn width(code: u32) -> usize {
    match code & 0x18 {
        0 => 4,
        8 => 2,
        _ => 1,
    }
}

/// An instruction of arithmetic; `None` for a division by 0, which ends the program.
fn arithmetic(op: u32, a: u32, with: u32) -> Option<u32> {
    Some(match op {
        0x00 => a.wrapping_add(with),
        0x10 => a.wrapping_sub(with),
        0x20 => a.wrapping_mul(with),
        0x30 => a.checked_div(with)?,
        0x40 => a | with,
        0x50 => a & with,
        0x60 => a.wrapping_shl(with),
        0x70 => a.wrapping_shr(with),
        0x80 => a.wrapping_neg(),
        0x90 => a.checked_rem(with)?,
        _ => a ^ with,
    })
}

/// A packet with its headers written out.
struct View<'a> {
    skb: &'a Skb,
    bytes: &'a [u8],
}

impl View<'_> {
    /// `bpf_skb_load_helper_*`.
    fn load(&self, at: i32, width: usize) -> Option<u32> {
        let at = match at {
            0.. => at,
            NET_OFF.. => at - NET_OFF + ETH_HLEN as i32,
            LL_OFF.. => at - LL_OFF,
            _ => return None,
        };
        let at = at as usize;
        if at + width > self.skb.len as usize {
            return None;
        }
        let byte = |i: usize| u32::from(self.bytes.get(i).copied().unwrap_or(0));
        Some((at..at + width).fold(0, |word, i| word << 8 | byte(i)))
    }
    /// What the kernel itself knows of the packet: `SKF_AD_*`.
    fn own(&self, what: u32, a: u32, x: u32, rng: &mut Rng) -> u32 {
        let skb = self.skb;
        let (tpid, tci) = skb.rare().vlan.unwrap_or((0, 0));
        match what {
            0 => u32::from(skb.protocol()),
            4 => u32::from(skb.rare().ptype.unwrap_or(0)),
            8 => skb.tc.dev,
            20 => skb.mark,
            24 => u32::from(skb.rare().queue_mapping),
            // Ethernet.
            28 => 1,
            40 => a ^ x,
            44 => u32::from(tci),
            48 => u32::from(skb.rare().vlan.is_some()),
            52 => self.payload_offset(),
            56 => rng.next_u32(),
            60 => u32::from(tpid),
            _ => 0,
        }
    }
    /// `__skb_get_poff`.
    fn payload_offset(&self) -> u32 {
        let (l3, l4) = self.skb.innermost();
        let (network, protocol, whole) = match l3 {
            L3::Ipv4(h) => (20, h.protocol, h.frag_off & 0x3fff == 0),
            L3::Ipv6(h) => (h.header_len(), h.protocol(), h.fragment().is_none()),
            _ => return 0,
        };
        let transport = match (protocol, l4) {
            _ if !whole => 0,
            (_, L4::Tcp(tcp)) => tcp.header_len(),
            (1 | 17 | 58 | 136, _) => 8,
            _ => 0,
        };
        ETH_HLEN + network + transport
    }
}

/// `bpf_check_classic` with `check_load_and_stores`.
fn is_valid(ops: &[[u32; 4]]) -> bool {
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
    returns && loads_follow_stores(ops)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;

    fn run(ops: &[[u32; 4]]) -> Option<u32> {
        let list: Vec<Options> = ops
            .iter()
            .map(|&[code, jt, jf, k]| {
                Options::new().with("code", code).with("jt", jt).with("jf", jf).with("k", k)
            })
            .collect();
        let mut skb = packet(0, 100);
        (skb.mark, skb.rare_mut().vlan) = (7, Some((0x8100, 0x2005)));
        Some(Program::new(&list)?.run(&skb, &mut Rng::named(1, "bpf")))
    }

    #[test]
    fn programs_the_kernel_takes() {
        // As tcpdump writes `ip`: load the ethertype, compare, return.
        assert!(
            run(&[[0x28, 0, 0, 12], [0x15, 0, 1, 0x800], [0x06, 0, 0, 262_144], [0x06, 0, 0, 0]]).is_some()
        );
        assert_eq!(run(&[[0x15, 0, 5, 0x800], [0x06, 0, 0, 0]]), None, "a jump beyond the end");
        assert_eq!(run(&[[0x00, 0, 0, 1]]), None, "no return at the end");
        assert_eq!(run(&[[999, 0, 0, 0], [0x06, 0, 0, 0]]), None, "no such instruction");
        assert_eq!(run(&[[0x60, 0, 0, 3], [0x06, 0, 0, 0]]), None, "memory read before it is written");
        assert!(run(&[[0x02, 0, 0, 3], [0x60, 0, 0, 3], [0x06, 0, 0, 0]]).is_some());
        assert_eq!(run(&[[0x34, 0, 0, 0], [0x06, 0, 0, 0]]), None, "division by 0");
    }

    #[test]
    fn what_programs_answer() {
        let answer_a = |op: [u32; 4]| run(&[op, [0x16, 0, 0, 0]]).unwrap();
        // The source address, the destination port by the length of the header, one byte, the length.
        assert_eq!(answer_a([0x20, 0, 0, 26]), 0x0a00_0001);
        assert_eq!(run(&[[0xb1, 0, 0, 14], [0x48, 0, 0, 16], [0x16, 0, 0, 0]]), Some(2000));
        assert_eq!(answer_a([0x30, 0, 0, 23]), 17);
        assert_eq!(answer_a([0x80, 0, 0, 0]), 100);
        // From the network header on; beyond the end.
        assert_eq!(answer_a([0x30, 0, 0, (NET_OFF + 9) as u32]), 17);
        assert_eq!(run(&[[0x20, 0, 0, 97], [0x06, 0, 0, 5]]), Some(0));
        assert_eq!(run(&[[0x20, 0, 0, 96], [0x06, 0, 0, 5]]), Some(5));
        // The mark, the tag, the offset of the payload.
        assert_eq!(
            [20, 44, 48, 60, 52].map(|what| answer_a([0x20, 0, 0, AD_OFF + what])),
            [7, 0x2005, 1, 0x8100, 42]
        );
        // Arithmetic and a division by an X of 0.
        assert_eq!(run(&[[0x00, 0, 0, 7], [0x64, 0, 0, 3], [0x94, 0, 0, 10], [0x16, 0, 0, 0]]), Some(6));
        assert_eq!(run(&[[0x00, 0, 0, 7], [0x3c, 0, 0, 0], [0x06, 0, 0, 9]]), Some(0));
    }
}
