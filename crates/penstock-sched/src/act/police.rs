//! `police`: a token bucket that says what becomes of a packet within and beyond it.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_police.c`.
//! Differs: none known.

use super::{Act, ActSpec, Init, Offload, Ready, Run, goto_chain, int, valid};
use crate::estimator::Estimator;
use crate::rates::{RateCfg, RateTable};
use penstock_model::psched::TICK_NS;
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::Skb;
use penstock_packet::headers::ETH_HLEN;

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "police",
    about: "policer: one action within the rate, another beyond it",
    kernels: &Kernel::ALL,
    simulated: true,
    init,
};

/// Pass, pipe, drop: answers that hardware can give, and all jumps.
fn in_hardware(action: i32) -> bool {
    matches!(action, super::OK | super::SHOT | super::PIPE | super::UNSPEC) || action as u32 >> 28 != 0
}

#[derive(Clone, Debug)]
struct Police {
    /// As dumped: `mtu burst rate mpu overhead linklayer peakrate pkts_rate pkts_burst avrate result`.
    shown: Options,
    /// What becomes of a packet within the rate.
    result: i32,
    /// An estimator runs.
    estimated: bool,
    bucket: Bucket,
}

/// The token buckets, in ns or, in 2.6.35, in ticks of 64 ns.
#[derive(Clone, Debug)]
struct Bucket {
    // Parameters
    /// Of 2.6.35.
    old: bool,
    /// Longest packet within the rate, bytes.
    mtu: u32,
    /// Depth.
    burst: i64,
    /// Depth of the peak's bucket.
    peak_burst: i64,
    /// What the estimated rate must stay below, bytes per second; 0: anything.
    avrate: u64,
    meter: Meter,
    // Variables
    /// When the buckets were last filled.
    at: i64,
    tokens: i64,
    peak_tokens: i64,
}

/// What is metered, and how a length becomes time.
#[derive(Clone, Debug)]
enum Meter {
    /// The length of a packet alone.
    None,
    Ns {
        rate: RateCfg,
        peak: Option<RateCfg>,
    },
    Ticks {
        rate: RateTable,
        peak: Option<RateTable>,
    },
    /// Packets, not bytes.
    Packets(RateCfg),
}

impl Bucket {
    /// As `tcf_police_init` fills it.
    fn new(init: &Init<'_>, o: &Options, mtu: u32, before: Option<&Bucket>) -> Bucket {
        let number = |name| o.u32(name).unwrap_or(0);
        let (rate, peak) = (o.u64("rate").unwrap_or(0), o.u64("peakrate").unwrap_or(0));
        let (overhead, mpu) = (number("overhead") as u16, number("mpu") as u16);
        let linklayer = o.u32("linklayer").unwrap_or(1) as u8;
        let old = init.kernel == Kernel::V2_6_35;
        let scale = |ticks: u64| if old { ticks as i64 } else { (ticks * TICK_NS) as i64 };
        let mut burst = scale(u64::from(number("burst")));
        let meter = if rate != 0 && old {
            let table =
                |rate: u64, cell| RateTable::new(rate as u32, overhead, mpu, linklayer, number(cell) as u8);
            let peak = (peak != 0).then(|| table(peak, "peak_cell_log"));
            Meter::Ticks { rate: table(rate, "cell_log"), peak }
        } else if rate != 0 {
            let spec = |rate| RateCfg::new(rate, overhead, mpu, linklayer);
            Meter::Ns { rate: spec(rate), peak: (peak != 0).then(|| spec(peak)) }
        } else if let (false, Some(pps)) = (old, o.u64("pkts_rate")) {
            burst = scale(o.u64("pkts_burst").unwrap_or(0));
            Meter::Packets(RateCfg::new(pps, 0, 0, 0))
        } else {
            Meter::None
        };
        let peak_burst = match &meter {
            Meter::Ns { peak: Some(peak), .. } => peak.l2t_ns(mtu) as i64,
            Meter::Ticks { peak: Some(peak), .. } => i64::from(peak.l2t(mtu)),
            _ => 0,
        };
        // 2.6.35 keeps it.
        let kept = before.filter(|_| old).map_or(0, |before| before.avrate);
        let avrate = o.u64("avrate").unwrap_or(kept);
        // 2.6.35 sets the time only when it makes the action.
        let at = match before {
            Some(before) if old => before.at,
            _ if old => init.now.as_ns() / TICK_NS as i64,
            _ => init.now.as_ns(),
        };
        // A bucket of packets begins empty, and goes on as it is.
        let packets = |b: &Bucket| matches!(b.meter, Meter::Packets(_));
        let tokens = match meter {
            Meter::Packets(_) => before.filter(|b| packets(b)).map_or(0, |b| b.tokens),
            _ => burst,
        };
        Bucket { old, mtu, burst, peak_burst, avrate, meter, at, tokens, peak_tokens: peak_burst }
    }
    /// Whether a packet of `len` bytes is within the rate; takes its tokens where it is.
    fn conforms(&mut self, len: u32, now: Time) -> bool {
        let now = if self.old { now.as_ns() / TICK_NS as i64 } else { now.as_ns() };
        let passed = (now - self.at).min(self.burst);
        let (cost, peak_cost) = match &self.meter {
            Meter::None => return true,
            Meter::Ns { rate, peak } => {
                (rate.l2t_ns(len) as i64, peak.as_ref().map(|peak| peak.l2t_ns(len) as i64))
            }
            Meter::Ticks { rate, peak } => {
                (i64::from(rate.l2t(len)), peak.as_ref().map(|peak| i64::from(peak.l2t(len))))
            }
            Meter::Packets(rate) => (rate.l2t_ns(1) as i64, None),
        };
        let tokens = (passed + self.tokens).min(self.burst) - cost;
        let peak_tokens = peak_cost.map_or(0, |cost| (passed + self.peak_tokens).min(self.peak_burst) - cost);
        if (tokens | peak_tokens) < 0 {
            return false;
        }
        (self.at, self.tokens, self.peak_tokens) = (now, tokens, peak_tokens);
        true
    }
}

/// `qdisc_get_rtab`: whether a rate comes with a usable table.
fn table(options: &Options, cell_log: &str) -> bool {
    (1..32).contains(&options.u32(cell_log).unwrap_or(0))
}

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let new = init.kernel >= Kernel::V6_12;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    if place.exists && init.bind && !new {
        return Ok(Ready::Bound(index));
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let rate = options.u64("rate").filter(|&r| r != 0);
    let peakrate = options.u64("peakrate").filter(|&r| r != 0 && rate.is_some());
    let no_table = |rate: Option<u64>, cell| rate.is_some() && !table(options, cell);
    if no_table(rate, "cell_log") || no_table(peakrate, "peak_cell_log") {
        return Err(KernelError::errno(KernelError::ENOMEM));
    }
    let before = init.present::<Police>(place);
    let mut estimated = before.is_some_and(|p| p.estimated);
    if let Some(spec) = init.estimator {
        Estimator::new(init.kernel, spec, init.now, 0, 0)?;
        estimated = true;
    } else if options.has("avrate") && !estimated {
        return Err(init.invalid());
    }
    let result = int(options, "result");
    if new && !valid(result) {
        return Err(init.refusal(KernelError::EINVAL, "invalid fallback control action"));
    }
    if new && goto_chain(result).is_some() {
        return Err(init.refusal(KernelError::EINVAL, "goto chain not allowed on fallback"));
    }
    if new && options.has("pkts_rate") && rate.is_some() {
        let why = "packet-per-second and byte-per-second rate limits not allowed in same action";
        return Err(init.refusal(KernelError::EINVAL, why));
    }
    let none = if rate.is_some() { 255 << options.u32("cell_log").unwrap_or(0) } else { u32::MAX };
    let mtu = options.u32("mtu").filter(|&mtu| mtu != 0).unwrap_or(none);
    let mut shown = Options::new().with("mtu", mtu).with("burst", options.u32("burst").unwrap_or(0));
    let mut keep = |names: &[&'static str]| {
        for &name in names {
            if let Some(value) = options.value(name) {
                shown.set(name, value.clone());
            }
        }
    };
    if rate.is_some() {
        keep(&["rate", "mpu", "overhead", "linklayer"]);
    }
    if peakrate.is_some() {
        keep(&["peakrate"]);
    }
    if new {
        keep(&["pkts_rate", "pkts_burst"]);
    }
    if result != 0 {
        keep(&["result"]);
    }
    if options.u64("avrate").is_some_and(|r| r != 0) {
        keep(&["avrate"]);
    }
    let bucket = Bucket::new(init, options, mtu, before.map(|p| &p.bucket));
    Ok(Ready::Set { place, control, params: Box::new(Police { shown, result, estimated, bucket }) })
}

impl Act for Police {
    /// `tcf_police_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let bucket = &mut self.bucket;
        let fast = bucket.avrate != 0 && run.rate.is_none_or(|rate| rate >= bucket.avrate);
        // While a packet is received its length counts from the network header; the longest is of whole frames. In
        // 2.6.35 it is not.
        let whole = if skb.tc.at_ingress && !bucket.old { skb.pkt_len + ETH_HLEN } else { skb.pkt_len };
        let fits = if skb.gso().is_some() { skb.segments_fit(bucket.mtu) } else { whole <= bucket.mtu };
        if !fast && fits {
            if matches!(bucket.meter, Meter::None) {
                return self.result;
            }
            if bucket.conforms(skb.pkt_len, run.now) {
                return run.dropping(self.result);
            }
        }
        run.overlimit();
        run.dropping(control)
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
    fn offload(&self, control: i32) -> Offload {
        if in_hardware(control) && in_hardware(self.result) { Offload::Yes } else { Offload::Late }
    }
}
