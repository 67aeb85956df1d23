//! `tunnel_key`: tells a tunnel device behind it what to wrap a packet in.
//!
//! Follows: linux v6.12 `net/sched/act_tunnel_key.c`.

use super::plain::pick;
use super::{Act, ActSpec, Init, Offload, Ready, Run, int};
use penstock_model::{Kernel, KernelError, Options, Time, Value};
use penstock_packet::{Skb, TunnelInfo, TunnelOptions};
use std::net::IpAddr;
use std::sync::Arc;

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "tunnel_key",
    about: "set or release the metadata of a tunnel",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

const SET: u32 = 1;
const RELEASE: u32 = 2;
/// Most bytes of options.
const OPTS_MAX: usize = 255;
/// Most bytes of one geneve option.
const GENEVE_MAX: usize = 127;
/// Of a vxlan's group policy: the bits that mean something.
const GBP_MASK: u32 = 0x0048_ffff;

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |errno, why| Err(init.refusal(errno, why));
    let invalid = |why| no(KernelError::EINVAL, why);
    let Some(options) = options else { return invalid("Tunnel requires attributes to be passed") };
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    let action = options.u32("t_action").unwrap_or(0);
    let mut shown = Options::new().with("t_action", action);
    match action {
        RELEASE => {}
        SET => {
            let family = |v6: bool| {
                let is = |name| options.bytes(name).is_some_and(|a| (a.len() == 16) == v6);
                is("src_ip") && is("dst_ip")
            };
            let inner = options.nested("opts").map(|o| tunnel_options(init, o)).transpose()?;
            if !family(false) && !family(true) {
                return invalid("Missing either ipv4 or ipv6 src and dst");
            }
            let names = ["src_ip", "dst_ip", "key_id", "no_csum"];
            shown = pick(options, &names).with("t_action", action);
            for name in ["dst_port", "tos", "ttl"] {
                if let Some(n) = options.u32(name).filter(|&n| n != 0) {
                    shown = shown.with(name, n);
                }
            }
            if let Some(inner) = inner {
                shown = shown.with("opts", inner);
            }
        }
        _ => return invalid("Unknown tunnel key action"),
    }
    if place.exists && !init.replace {
        return no(KernelError::EEXIST, "TC IDR already exists");
    }
    let control = int(options, "action");
    init.control(control)?;
    let info = (action == SET).then(|| info(&shown)).flatten().map(Arc::new);
    Ok(Ready::Set { place, control, params: Box::new(TunnelKey { shown, info }) })
}

#[derive(Clone, Debug)]
struct TunnelKey {
    shown: Options,
    /// What packets get; none: what they have is taken from them.
    info: Option<Arc<TunnelInfo>>,
}

/// The metadata of these options. IPv4 is looked at first.
fn info(o: &Options) -> Option<TunnelInfo> {
    let address = |name| {
        let bytes = o.bytes(name)?;
        let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
        four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
    };
    let n = |name| o.u32(name).unwrap_or(0);
    Some(TunnelInfo {
        src: address("src_ip")?,
        dst: address("dst_ip")?,
        id: n("key_id").into(),
        dst_port: n("dst_port") as u16,
        tos: n("tos") as u8,
        ttl: n("ttl") as u8,
        csum: n("no_csum") == 0,
        nofrag: o.has("no_frag"),
        options: o.nested("opts").map(options_of).unwrap_or_default(),
    })
}

/// `tunnel_key_opts_set`.
fn options_of(o: &Options) -> TunnelOptions {
    if let Some(erspan) = o.nested("erspan") {
        let n = |name| erspan.u32(name).unwrap_or(0);
        return TunnelOptions::Erspan {
            ver: n("ver") as u8,
            index: n("index"),
            dir: n("dir") as u8,
            hwid: n("hwid") as u8,
        };
    }
    if let Some(vxlan) = o.nested("vxlan") {
        return TunnelOptions::Vxlan { gbp: vxlan.u32("gbp").unwrap_or(0) };
    }
    let mut bytes = Vec::new();
    for one in o.list("geneve") {
        let (data, n) = (one.bytes("data").unwrap_or_default(), |name| one.u32(name).unwrap_or(0));
        bytes.extend((n("class") as u16).to_be_bytes());
        bytes.extend([n("type") as u8, (data.len() / 4) as u8]);
        bytes.extend(data);
    }
    TunnelOptions::Geneve(bytes)
}

impl Act for TunnelKey {
    /// `tunnel_key_act`: what was known of its route is forgotten.
    fn act(&mut self, skb: &mut Skb, control: i32, _: &mut Run<'_>) -> i32 {
        if self.info.is_some() || skb.is_noted() {
            let rare = skb.rare_mut();
            (rare.realms, rare.tunnel) = (0, self.info.clone());
        }
        control
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
    fn offload(&self, _: i32) -> Offload {
        Offload::Yes
    }
}

/// `tunnel_key_copy_opts`: checked, and as they are dumped.
fn tunnel_options(init: &Init<'_>, given: &Options) -> Result<Options, KernelError> {
    let no = |errno, why| Err(init.refusal(errno, why));
    let invalid = |why| no(KernelError::EINVAL, why);
    if let Some(erspan) = given.nested("erspan") {
        let Some(version) = erspan.u32("ver") else {
            return invalid("Missing tunnel key erspan option ver");
        };
        let kept: &[&'static str] = match version {
            1 if !erspan.has("index") => return invalid("Missing tunnel key erspan option index"),
            1 => &["ver", "index"],
            2 if !erspan.has("dir") || !erspan.has("hwid") => {
                return invalid("Missing tunnel key erspan option dir or hwid");
            }
            2 => &["ver", "dir", "hwid"],
            _ => return invalid("Tunnel key erspan option ver is incorrect"),
        };
        return Ok(Options::new().with("erspan", pick(erspan, kept)));
    }
    if let Some(vxlan) = given.nested("vxlan") {
        let gbp = vxlan.u32("gbp").unwrap_or(0) & GBP_MASK;
        return Ok(Options::new().with("vxlan", Options::new().with("gbp", gbp)));
    }
    let list = given.list("geneve");
    let mut all = 0;
    for one in list {
        if one.bytes("data").is_some_and(|d| d.len() > GENEVE_MAX) {
            return no(KernelError::ERANGE, "Attribute failed policy validation");
        }
        let (true, true, Some(data)) = (one.has("class"), one.has("type"), one.bytes("data")) else {
            return invalid("Missing tunnel key geneve option class, type or data");
        };
        if data.len() < 4 {
            return no(KernelError::ERANGE, "Tunnel key geneve option data is less than 4 bytes long");
        }
        if data.len() % 4 != 0 {
            let why = "Tunnel key geneve option data is not a multiple of 4 bytes long";
            return no(KernelError::ERANGE, why);
        }
        all += 4 + data.len();
        if all > OPTS_MAX {
            return invalid("Tunnel options exceeds max size");
        }
    }
    if list.is_empty() {
        return invalid("Empty list of tunnel options");
    }
    Ok(Options::new().with("geneve", Value::List(list.to_vec())))
}
