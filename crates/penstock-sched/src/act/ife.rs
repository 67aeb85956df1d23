//! `ife`: wraps a packet in an Ethernet frame that carries metadata, or takes it out.
//!
//! Follows: linux v6.12 `net/sched/act_ife.c` `tcf_ife_encode`, `tcf_ife_decode`, `act_meta_mark.c`, `act_meta_skbprio.c`, `act_meta_skbtcindex.c`,
//! `net/ife/ife.c`.
//! Differs: a packet that is to be decoded and was not encoded by this action is dropped, whatever its bytes; so is one that only the bytes of its
//! addresses make a frame of this kind.

use super::{Act, ActSpec, Init, Ready, Run, SHOT, int};
use penstock_model::{Kernel, KernelError, Options, Time, Value};
use penstock_packet::{Head, IFE_MAX, Skb};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "ife",
    about: "carry metadata between machines in an Ethernet frame",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

const ENCODE: u32 = 1;
const ETH_P_IFE: u32 = 0xed3e;
/// What metadata there is.
const META: [&str; 3] = ["mark", "prio", "tcindex"];

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let Some(options) = options else {
        return Err(init.refusal(KernelError::EINVAL, "act_ife: IFE requires attributes to be passed"));
    };
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let flags = options.u32("flags").unwrap_or(0);
    let mut shown = Options::new().with("flags", flags).with("type", 0u32);
    if flags & ENCODE != 0 {
        shown = shown.with("type", options.u32("type").unwrap_or(ETH_P_IFE));
        for name in ["dst", "src"] {
            if let Some(mac) = options.bytes(name).filter(|m| m.iter().any(|&b| b != 0)) {
                shown = shown.with(name, mac.to_vec());
            }
        }
    }
    match options.nested("meta") {
        Some(meta) => shown = shown.with("meta", meta.clone()),
        // Without a list, all metadata there is may come.
        None => {
            let mut all = Options::new();
            for name in META {
                all.set(name, Value::Flag);
            }
            shown = shown.with("meta", all);
        }
    }
    let ife = Ife { beheads: init.kernel >= Kernel::V7_2, ..Ife::new(shown) };
    Ok(Ready::Set { place, control, params: Box::new(ife) })
}

/// Numbers of the metadata on the wire (`IFE_META_SKBMARK`, `IFE_META_PRIO`, `IFE_META_TCINDEX`), in the order of [`META`].
const IDS: [u16; 3] = [1, 3, 5];
/// Bytes of each with its head and what fills it up.
const TLV: usize = 8;
/// Bytes of their length, before them.
const METAHDRLEN: usize = 2;

/// One kind of metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meta {
    /// It is not asked for.
    None,
    /// As the packet has it, where that is not 0.
    Allow,
    /// This, whatever the packet has.
    Use(u32),
}

#[derive(Clone, Debug)]
struct Ife {
    shown: Options,
    encode: bool,
    ethertype: u16,
    /// Addresses of the frame around, where they are not those of the frame itself.
    src: Option<[u8; 6]>,
    dst: Option<[u8; 6]>,
    meta: [Meta; 3],
    /// On the sending side a packet that is taken out leaves without an Ethernet header.
    beheads: bool,
}

impl Ife {
    fn new(shown: Options) -> Ife {
        let mac = |name| shown.bytes(name).and_then(|m| <[u8; 6]>::try_from(m).ok());
        let list = shown.nested("meta");
        let meta = META.map(|name| match list.and_then(|m| m.value(name)) {
            None => Meta::None,
            Some(Value::Flag) => Meta::Allow,
            Some(_) => Meta::Use(list.and_then(|m| m.u32(name)).unwrap_or(0)),
        });
        let n = |name| shown.u32(name).unwrap_or(0);
        let (encode, ethertype) = (n("flags") & ENCODE != 0, n("type") as u16);
        Ife { encode, ethertype, src: mac("src"), dst: mac("dst"), meta, beheads: false, shown }
    }
    /// `tcf_ife_encode`.
    fn encode(&self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let own = [skb.mark, skb.priority, u32::from(skb.tc.index)];
        let (mut bytes, mut room, mut at) = ([0; IFE_MAX], METAHDRLEN, METAHDRLEN);
        for ((meta, own), id) in self.meta.into_iter().zip(own).zip(IDS) {
            let value = match meta {
                Meta::Use(value) => value,
                Meta::Allow if own != 0 => own,
                _ => continue,
            };
            room += TLV;
            // A value of 0 has its room and is not written.
            let short = id == IDS[2];
            let (value, len) = if short { (value << 16, 2) } else { (value, 4) };
            if value != 0 {
                bytes[at..at + 2].copy_from_slice(&id.to_be_bytes());
                bytes[at + 2..at + 4].copy_from_slice(&(4 + len as u16).to_be_bytes());
                bytes[at + 4..at + TLV].copy_from_slice(&value.to_be_bytes());
                at += TLV;
            }
        }
        if room == METAHDRLEN {
            run.overlimit();
            return control;
        }
        let head = Head::Ife { meta: bytes, len: room as u8, eth: skb.eth };
        if control == SHOT || !skb.tc.at_ingress && skb.len + head.frame_len() > run.mtu() {
            return run.dropping(SHOT);
        }
        bytes[..METAHDRLEN].copy_from_slice(&(room as u16).to_be_bytes());
        // What it was before: filters behind go by that.
        let declared = skb.declared();
        skb.wrap(self.ethertype, Head::Ife { meta: bytes, len: room as u8, eth: skb.eth });
        skb.rare_mut().declared = Some(declared);
        skb.eth = (self.src.unwrap_or(skb.eth.0), self.dst.unwrap_or(skb.eth.1));
        control
    }
    /// `tcf_ife_decode`.
    fn decode(&self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let within = skb.rare().within.is_some();
        let Some(Head::Ife { meta, len, eth }) =
            skb.rare().wrapped.as_ref().filter(|_| !within).map(|w| w.head.clone())
        else {
            return run.dropping(SHOT);
        };
        let meta = &meta[..usize::from(len).min(IFE_MAX)];
        let two = |at: usize| meta.get(at..at + 2).map_or(0, |b| usize::from(b[0]) << 8 | usize::from(b[1]));
        if two(0) != meta.len() {
            return run.dropping(SHOT);
        }
        skb.take_off();
        skb.eth = eth;
        let mut at = METAHDRLEN;
        while at < meta.len() {
            let (id, len) = (two(at) as u16, two(at + 2));
            let next = at + len.next_multiple_of(4);
            if len < 4 || next > meta.len() {
                return run.dropping(SHOT);
            }
            let value = (two(at + 4) as u32) << 16 | two(at + 6) as u32;
            match IDS.iter().position(|known| *known == id).filter(|n| self.meta[*n] != Meta::None) {
                Some(0) => skb.mark = value,
                Some(1) => skb.priority = value,
                Some(_) => skb.tc.index = (value >> 16) as u16,
                // What it has no use for.
                None => run.overlimit(),
            }
            at = next;
        }
        //= linux v7.2 net/sched/act_ife.c tcf_ife_decode: eth_type_trans steps over the header that was found, on the sending side too.
        if self.beheads && !skb.tc.at_ingress {
            skb.rare_mut().headless = true;
        }
        control
    }
}

impl Act for Ife {
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        if self.encode { self.encode(skb, control, run) } else { self.decode(skb, control, run) }
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{packet, running};

    fn ife(encode: bool, meta: &[(&'static str, Option<u32>)]) -> Ife {
        let o = Options::new().with("flags", u32::from(encode)).with("type", ETH_P_IFE);
        let meta = meta.iter().fold(Options::new(), |m, (name, value)| match value {
            Some(n) => m.with(name, *n),
            None => m.with(name, Value::Flag),
        });
        Ife::new(o.with("dst", vec![9u8; 6]).with("meta", meta))
    }

    #[test]
    fn metadata_go_with_the_frame_and_come_back() {
        let mut skb = packet(0, 100);
        skb.eth = ([1; 6], [2; 6]);
        (skb.mark, skb.priority, skb.tc.index) = (0x11, 0x0001_0002, 7);
        let (l3, eth) = (skb.l3, skb.eth);
        let mut encode = ife(true, &[("mark", None), ("prio", Some(5)), ("tcindex", None)]);
        assert_eq!(running(&mut encode, &mut skb, 3, 1500), (3, 0, 0));
        assert_eq!((skb.len, skb.protocol(), skb.eth), (100 + 14 + 2 + 24, 0xed3e, ([1; 6], [9; 6])));
        let mut bytes = [0; penstock_packet::skb::HEADER_MAX];
        skb.header_bytes(&mut bytes);
        let told = [0, 26, 0, 1, 0, 8, 0, 0, 0, 0x11, 0, 3, 0, 8, 0, 0, 0, 5, 0, 5, 0, 6, 0, 7, 0, 0];
        assert_eq!(bytes[14..40], told);
        (skb.mark, skb.priority, skb.tc.index) = (0, 0, 0);
        // The decoder takes what it asks for.
        let mut decode = ife(false, &[("prio", None), ("tcindex", None)]);
        assert_eq!(running(&mut decode, &mut skb, 0, 1500), (0, 0, 1));
        assert_eq!((skb.mark, skb.priority, skb.tc.index), (0, 5, 7));
        assert_eq!((skb.len, skb.l3, skb.eth), (100, l3, eth));
        // There is nothing more to decode.
        assert_eq!(running(&mut decode, &mut skb, 0, 1500), (SHOT, 1, 0));
    }

    #[test]
    fn what_it_has_no_use_for_counts_and_the_old_protocol_stays_declared() {
        let mut skb = packet(0, 100);
        skb.mark = 3;
        assert_eq!(
            running(&mut ife(true, &[("mark", None), ("prio", Some(5))]), &mut skb, 3, 1500),
            (3, 0, 0)
        );
        assert_eq!((skb.protocol(), skb.declared()), (0xed3e, 0x800));
        let mut other = ife(false, &[("prio", None)]);
        assert_eq!(running(&mut other, &mut skb, 3, 1500), (3, 0, 1));
        assert_eq!((skb.protocol(), skb.declared(), skb.rare().headless), (0x800, 0x800, false));
        // As Linux 7.2 does it, what leaves begins with its network header.
        assert_eq!(running(&mut ife(true, &[("prio", Some(5))]), &mut skb, 3, 1500), (3, 0, 0));
        let mut newer = Ife { beheads: true, ..ife(false, &[("prio", None)]) };
        assert_eq!(running(&mut newer, &mut skb, 3, 1500), (3, 0, 0));
        assert!(skb.rare().headless);
        skb.travel();
        assert_eq!((skb.len, matches!(skb.l3, penstock_packet::L3::Other(_))), (86, true));
    }

    #[test]
    fn without_metadata_it_passes_and_beyond_the_mtu_it_does_not() {
        let mut encode = ife(true, &[("mark", None)]);
        let mut skb = packet(0, 100);
        assert_eq!(running(&mut encode, &mut skb, 3, 1500), (3, 0, 1));
        assert_eq!(skb.len, 100);
        // The frame with both Ethernet headers counts: 100 + 24.
        skb.mark = 1;
        assert_eq!(running(&mut encode, &mut skb, 3, 123), (SHOT, 1, 0));
        assert_eq!(running(&mut encode, &mut skb, SHOT, 1500), (SHOT, 1, 0));
        assert_eq!(running(&mut encode, &mut skb, 3, 124), (3, 0, 0));
    }
}
