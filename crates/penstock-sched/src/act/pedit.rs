//! `pedit`: rewrites words of a packet.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_pedit.c`.
//! Values and masks are kept in host order; the kernel adds (`add`) words as a little-endian machine reads them.
//! Differs: payload has no contents, and what is written there, into lengths, checksums or header lengths is forgotten. An IPv4 header
//! changed without `csum` has a wrong checksum (`TcNote::bad_checksum`).

use super::plain::{Plain, pick};
use super::{Act, ActSpec, Init, Offload, Ready, Run, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::skb::HEADER_MAX;
use penstock_packet::{L3, L4, Skb};

/// The kind.
pub static SPEC: ActSpec =
    ActSpec { id: "pedit", about: "rewrite words of a packet", kernels: &Kernel::ALL, simulated: true, init };

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |why| Err(init.refusal(KernelError::EINVAL, why));
    let Some(options) = options else { return no("act_pedit: Pedit requires attributes to be passed") };
    let index = options.u32("index").unwrap_or(0);
    let keys = options.list("keys");
    let old = init.kernel == Kernel::V2_6_35;
    if old && keys.is_empty() && init.place(index)?.is_none_or(|p| !p.exists) {
        return Err(init.invalid());
    }
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    if keys.is_empty() && !old {
        return no("act_pedit: Pedit requires keys to be passed");
    }
    let control = int(options, "action");
    init.control(control)?;
    let unaligned =
        |key: &Options| key.u32("offmask").unwrap_or(0) == 0 && !(int(key, "off") as u32).is_multiple_of(4);
    if !old && keys.iter().any(unaligned) {
        return no("act_pedit: Offsets must be on 32bit boundaries");
    }
    let command = |key: &Options| key.u32("cmd").unwrap_or(0);
    let alike = keys.iter().all(|key| command(key) == command(&keys[0]));
    let offload = match alike && options.has("ex") {
        true => Offload::Yes,
        false => Offload::Says("act_pedit: Unsupported pedit command offload"),
    };
    let shown = pick(options, &["ex", "keys"]);
    let new = |key| Key { asks_protocol: init.kernel >= Kernel::V7_2, ..Key::new(key, shown.has("ex")) };
    let keys = shown.list("keys").iter().map(new).collect();
    Ok(Ready::Set { place, control, params: Box::new(Pedit { plain: Plain { shown, offload }, keys }) })
}

/// `TCA_PEDIT_KEY_EX_HDR_TYPE_*`.
const ETH: u32 = 1;
const TCP: u32 = 4;
const UDP: u32 = 5;

/// Whether an IPv4 header of at least five words says that the transport header follows, and this is no later fragment.
fn follows(header: u32, bytes: &[u8; HEADER_MAX]) -> bool {
    let ip = &bytes[ETH_HLEN as usize..];
    let protocol = if header == TCP { 6 } else { 17 };
    ip[0] & 15 >= 5 && ip[9] == protocol && u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff == 0
}

/// One word to rewrite: `struct tc_pedit_key`.
#[derive(Clone, Copy, Debug)]
struct Key {
    val: u32,
    mask: u32,
    off: i32,
    at: u32,
    offmask: u32,
    shift: u32,
    /// The header that the offset counts from.
    header: u32,
    add: bool,
    /// 7.2 asks whether the IPv4 header says that the header is there.
    asks_protocol: bool,
}

impl Key {
    fn new(o: &Options, extended: bool) -> Key {
        let n = |name| o.u32(name).unwrap_or(0);
        Key {
            val: n("val"),
            mask: n("mask"),
            off: int(o, "off"),
            at: n("at"),
            offmask: n("offmask"),
            shift: n("shift"),
            header: if extended { n("header") } else { 0 },
            add: extended && n("cmd") != 0,
            asks_protocol: false,
        }
    }
    /// Where it is written, from the start of the frame; `None` where the kernel gives up.
    fn place(&self, skb: &Skb, bytes: &[u8; HEADER_MAX]) -> Option<usize> {
        let network = ETH_HLEN as i32;
        let start = match (self.header, &skb.l3, &skb.l4) {
            (ETH, ..) => 0,
            (TCP | UDP, L3::Ipv4(_), _) if self.asks_protocol && !follows(self.header, bytes) => return None,
            (TCP | UDP, L3::Ipv4(_), _) => network + 20,
            (TCP, L3::Ipv6(h), L4::Tcp(_)) | (UDP, L3::Ipv6(h), L4::Udp(_)) => {
                network + h.header_len() as i32
            }
            (TCP | UDP, ..) => return None,
            _ => network,
        };
        let mut off = self.off;
        if self.offmask != 0 {
            let at = usize::try_from(start.checked_add(self.at as i32)?).ok()?;
            if at >= skb.len as usize {
                return None;
            }
            let byte = u32::from(bytes.get(at).copied().unwrap_or(0));
            off = off.wrapping_add((byte & self.offmask).checked_shr(self.shift).unwrap_or(0) as i32);
            if off % 4 != 0 {
                return None;
            }
        }
        let place = start.checked_add(off)?;
        (place <= skb.len as i32 - 4).then(|| usize::try_from(place).ok())?
    }
    /// The new word.
    fn word(&self, old: u32) -> u32 {
        let val = match self.add {
            true => (old.swap_bytes().wrapping_add(self.val.swap_bytes())).swap_bytes() & !self.mask,
            false => self.val,
        };
        (old & self.mask) ^ val
    }
}

#[derive(Clone, Debug)]
struct Pedit {
    plain: Plain,
    keys: Vec<Key>,
}

impl Act for Pedit {
    /// `tcf_pedit_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let mut bytes = [0; HEADER_MAX];
        let len = skb.header_bytes(&mut bytes);
        let before = bytes;
        for key in &self.keys {
            let Some(at) = key.place(skb, &bytes) else {
                run.overlimit();
                break;
            };
            // Beyond the headers is payload, which has no contents.
            if let Some(four) = bytes.get_mut(at..at + 4) {
                let old = u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
                four.copy_from_slice(&key.word(old).to_be_bytes());
            }
        }
        if bytes != before {
            let header = ETH_HLEN as usize..ETH_HLEN as usize + 20;
            if matches!(skb.l3, L3::Ipv4(_)) && bytes[header.clone()] != before[header] {
                skb.tc.bad_checksum = true;
            }
            skb.set_header_bytes(&bytes[..len]);
        }
        control
    }
    fn dump(&self, now: Time) -> Options {
        self.plain.dump(now)
    }
    fn offload(&self, control: i32) -> Offload {
        self.plain.offload(control)
    }
}
