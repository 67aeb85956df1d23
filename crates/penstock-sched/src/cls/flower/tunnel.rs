//! The options of tunnels that a flower filter looks at.
//!
//! Follows: linux v6.12 `net/sched/cls_flower.c` `fl_set_enc_opt`, `fl_set_geneve_opt` and its kin, `fl_dump_key_enc_opt`.

use crate::qdisc::Device;
use penstock_model::{KernelError, Options, Value};
use penstock_packet::{TunnelInfo, TunnelOptions};

/// Keys and masks of one kind of tunnel, each option as numbers and, geneve's, bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tunnel {
    of: String,
    keys: Vec<Opt>,
    masks: Vec<Opt>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Opt {
    numbers: Vec<(&'static str, u64)>,
    data: Vec<u8>,
}

/// Most bytes of options (`FLOW_DIS_TUN_OPTS_MAX`), of which each option of geneve has 4 for its head.
const MAX: usize = 255;

/// The bits of vxlan's group policy that are kept (`VXLAN_GBP_MASK`).
const VXLAN_GBP_MASK: u64 = 0x0048_ffff;

fn refuse<T>(device: &Device, errno: i32, why: &str) -> Result<T, KernelError> {
    Err(device.refusal(errno, why))
}

/// Bytes that are compared: the options, their length, which kind they are.
const BYTES: usize = 16 * WORDS;
/// The same in words.
pub const WORDS: usize = 17;
/// `IP_TUNNEL_*_OPT_BIT`.
const GENEVE_OPT_BIT: u8 = 11;
const VXLAN_OPT_BIT: u8 = 12;
const ERSPAN_OPT_BIT: u8 = 14;
const GTP_OPT_BIT: u8 = 15;
const PFCP_OPT_BIT: u8 = 17;

fn words(bytes: &[u8; BYTES]) -> [u128; WORDS] {
    let mut words = [0; WORDS];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(16)) {
        *word = chunk.iter().fold(0, |word, b| word << 8 | u128::from(*b));
    }
    words
}

/// `struct erspan_metadata`.
fn erspan(ver: u8, index: u32, dir: u8, hwid: u8) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[0] = ver;
    match ver {
        1 => bytes[4..8].copy_from_slice(&index.to_be_bytes()),
        _ => (bytes[10], bytes[11]) = (hwid >> 4 & 3, (dir & 1) << 3 | hwid << 4),
    }
    bytes
}

/// An option as it stands in memory. What no packet here has, of GTP and PFCP, is empty.
fn image(of: &str, o: &Opt) -> Vec<u8> {
    let n = |name: &str| o.numbers.iter().find(|(known, _)| *known == name).map_or(0, |(_, n)| *n);
    match of {
        "geneve" => {
            let mut bytes = (n("class") as u16).to_be_bytes().to_vec();
            bytes.extend([n("kind") as u8, (o.data.len() / 4) as u8]);
            bytes.extend(&o.data);
            bytes
        }
        "vxlan" => (n("gbp") as u32).to_le_bytes().to_vec(),
        "erspan" => erspan(n("ver") as u8, n("index") as u32, n("dir") as u8, n("hwid") as u8).to_vec(),
        _ => Vec::new(),
    }
}

/// The numbers of a kind's options; what a mask does not give is all ones.
fn fields(of: &str, erspan: u64) -> &'static [(&'static str, u64)] {
    match (of, erspan) {
        ("geneve", _) => &[("class", 0xffff), ("kind", 0xff)],
        ("vxlan", _) => &[("gbp", 0xffff_ffff)],
        ("erspan", 1) => &[("ver", 1), ("index", 0xffff_ffff)],
        ("erspan", _) => &[("ver", 2), ("dir", 1), ("hwid", 0xff)],
        ("gtp", _) => &[("pdu_type", 0xff), ("qfi", 0xff)],
        _ => &[("kind", 0xff), ("seid", u64::MAX)],
    }
}

/// What must not be missing in a key, and the kernel's sentence.
fn missing(of: &str, o: &Options, ver: u64) -> Option<&'static str> {
    let lacks = |names: &[&str]| names.iter().any(|name| !o.has(name));
    let (names, why): (&[&str], _) = match of {
        "geneve" => (&["class", "kind", "data"], "Missing tunnel key geneve option class, type or data"),
        "vxlan" => (&["gbp"], "Missing tunnel key vxlan option gbp"),
        "erspan" if !o.has("ver") => (&["ver"], "Missing tunnel key erspan option ver"),
        "erspan" if ver == 1 => (&["index"], "Missing tunnel key erspan option index"),
        "erspan" if ver == 2 => (&["dir", "hwid"], "Missing tunnel key erspan option dir or hwid"),
        "gtp" => (&["pdu_type", "qfi"], "cls_flower: Missing tunnel key gtp option pdu type or qfi"),
        "pfcp" => (&["kind"], "cls_flower: Missing tunnel key pfcp option type"),
        _ => return None,
    };
    lacks(names).then_some(why)
}

fn read(of: &str, o: &Options, key: bool, device: &Device) -> Result<Opt, KernelError> {
    let ver = o.u64("ver").unwrap_or(1);
    if let Some(why) = missing(of, o, ver).filter(|_| key) {
        return refuse(device, KernelError::EINVAL, why);
    }
    if of == "erspan" && ver != 1 && ver != 2 {
        return refuse(device, KernelError::EINVAL, "Tunnel key erspan option ver is incorrect");
    }
    let data = o.bytes("data").unwrap_or_default().to_vec();
    if of == "geneve" && (key || o.has("data")) {
        if data.len() < 4 {
            let why = "Tunnel key geneve option data is less than 4 bytes long";
            return refuse(device, KernelError::ERANGE, why);
        }
        if !data.len().is_multiple_of(4) {
            let why = "Tunnel key geneve option data is not a multiple of 4 bytes long";
            return refuse(device, KernelError::ERANGE, why);
        }
    }
    let numbers = fields(of, ver)
        .iter()
        .map(|&(name, ones)| {
            let given = o.u64(name).map(|n| if of == "vxlan" { n & VXLAN_GBP_MASK } else { n });
            let n = given.unwrap_or(if name == "ver" { ver } else { ones });
            // Bits of `struct erspan_md2`, of keys and masks.
            let n = match (of, name) {
                ("erspan", "dir") => n & 1,
                ("erspan", "hwid") => n & 0x3f,
                _ => n,
            };
            (name, n)
        })
        .collect();
    Ok(Opt { numbers, data })
}

impl Tunnel {
    /// `fl_set_enc_opt`.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn new(o: &Options, device: &Device) -> Result<Option<Tunnel>, KernelError> {
        let Some(of) = o.str("enc_opts_type") else { return Ok(None) };
        let (mut keys, mut masks) = (Vec::new(), Vec::new());
        let mut len = 0;
        let given = o.list("enc_opts_mask");
        for (i, key) in o.list("enc_opts").iter().enumerate() {
            let key = read(of, key, true, device)?;
            len += 4 + key.data.len();
            if of == "geneve" && len > MAX {
                let why = "Tunnel options exceeds max size";
                return refuse(device, KernelError::ERANGE, why);
            }
            let mut mask = match given.get(i) {
                Some(mask) => read(of, mask, false, device)?,
                None => Opt { numbers: fields(of, 1).to_vec(), data: Vec::new() },
            };
            if of == "geneve" && mask.data.is_empty() {
                mask.data = vec![0xff; key.data.len()];
            }
            if mask.data.len() != key.data.len() {
                return refuse(device, KernelError::EINVAL, "Key and mask miss aligned");
            }
            keys.push(key);
            masks.push(mask);
        }
        Ok(Some(Tunnel { of: of.to_owned(), keys, masks }))
    }
    /// Forgets the keys: what is left is the mask.
    pub fn only_mask(&mut self) {
        self.keys.clear();
    }
    /// Whether it looks only at bits that `template` looks at.
    pub fn fits(&self, template: &Tunnel) -> bool {
        let within = |mine: &Opt, its: &Opt| {
            let numbers = mine.numbers.iter().zip(&its.numbers).all(|(a, b)| a.1 & !b.1 == 0);
            let data = mine.data.iter().zip(&its.data).all(|(a, b)| a & !b == 0);
            numbers && data && mine.data.len() <= its.data.len()
        };
        self.of == template.of
            && self.masks.len() <= template.masks.len()
            && self.masks.iter().zip(&template.masks).all(|(mine, its)| within(mine, its))
    }
    /// The options as the dissector has them; of a mask the bits that count.
    pub fn words(&self) -> [u128; WORDS] {
        // A mask has no keys.
        let key = !self.keys.is_empty();
        let mut bytes = [0; BYTES];
        let mut at = 0;
        for (n, mask) in self.masks.iter().enumerate() {
            let masked = image(&self.of, mask);
            let own = if key { self.keys.get(n).map(|k| image(&self.of, k)) } else { None };
            for (i, bits) in masked.iter().enumerate().take(MAX - at.min(MAX)) {
                bytes[at + i] = own.as_ref().map_or(*bits, |own| own.get(i).copied().unwrap_or(0) & bits);
            }
            at += masked.len();
        }
        bytes[MAX] = at.min(MAX) as u8;
        bytes[MAX + 1] = match self.of.as_str() {
            "geneve" => GENEVE_OPT_BIT,
            "vxlan" => VXLAN_OPT_BIT,
            "erspan" => ERSPAN_OPT_BIT,
            "gtp" => GTP_OPT_BIT,
            _ => PFCP_OPT_BIT,
        };
        words(&bytes)
    }
    /// The same of what stands beside a packet.
    pub fn of_packet(info: Option<&TunnelInfo>) -> [u128; WORDS] {
        let mut bytes = [0; BYTES];
        let mut put = |data: &[u8], bit| {
            let len = data.len().min(MAX);
            bytes[..len].copy_from_slice(&data[..len]);
            (bytes[MAX], bytes[MAX + 1]) = (len as u8, bit);
        };
        match info.map(|i| &i.options) {
            Some(TunnelOptions::Geneve(data)) if !data.is_empty() => put(data, GENEVE_OPT_BIT),
            Some(TunnelOptions::Vxlan { gbp }) => put(&gbp.to_le_bytes(), VXLAN_OPT_BIT),
            Some(&TunnelOptions::Erspan { ver, index, dir, hwid }) => {
                put(&erspan(ver, index, dir, hwid), ERSPAN_OPT_BIT);
            }
            _ => {}
        }
        words(&bytes)
    }
    /// Adds its options to a dump.
    pub fn dump(&self, o: &mut Options) {
        let list = |opts: &[Opt]| {
            Value::List(
                opts.iter()
                    .map(|opt| {
                        let head = opt.numbers.iter().fold(Options::new(), |o, (name, n)| o.with(name, *n));
                        if self.of == "geneve" { head.with("data", opt.data.clone()) } else { head }
                    })
                    .collect(),
            )
        };
        o.set("enc_opts_type", self.of.as_str().into());
        o.set("enc_opts", list(&self.keys));
        o.set("enc_opts_mask", list(&self.masks));
    }
}
