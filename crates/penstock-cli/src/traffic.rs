//! `penstock send`, `recv`, `echo`: traffic from real sockets.

use anyhow::{Result, bail};
use penstock_kernel::traffic::{self, Goal, RecvOptions, RecvReport, SendOptions, SendReport, draw};
use penstock_kernel::wire::Port;
use penstock_measure::Distribution;
use penstock_measure::number::Unit;
use penstock_model::traffic::{Dist, Load, Sizes};
use penstock_model::{Rate, Size, Span};
use std::path::PathBuf;
use std::process::ExitCode;

/// Port where nobody names one.
const PORT: u16 = 5100;

/// A time with its unit: tc's own default, the microsecond, is nobody's wish here.
fn span(text: &str) -> Result<Span, String> {
    if text.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(format!("it has no unit: write {text}s or {text}ms"));
    }
    Span::parse(text).map_err(|_| "it is no time: write 10s, 500ms or 20us".to_owned())
}

/// What `penstock send` takes.
#[derive(clap::Args)]
#[command(after_help = "Without --rate, --gap, --trace and --bytes TCP sends as much as it can.\n\
                  Try:  penstock send 10.0.0.2 --udp --size 160 --gap 20ms --for 10s")]
pub struct SendArgs {
    /// Address or name of the receiver
    host: String,
    /// Its port
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Datagrams instead of TCP
    #[arg(long)]
    udp: bool,
    /// Steady rate of payload, e.g. 64kbit
    #[arg(long, value_parser = Rate::parse)]
    rate: Option<Rate>,
    /// Number of bytes, e.g. 10m
    #[arg(long, value_parser = Size::parse, conflicts_with_all = ["rate", "gap", "trace"])]
    bytes: Option<Size>,
    /// Payload bytes: 160, 64..1200, 64,512,1500, exp:500<=1400, pareto:100:1.2, or normal:800:100 [default: 1200]
    #[arg(long, value_parser = draw::parse_sizes)]
    size: Option<Sizes>,
    /// Distance of packets: 20ms, 10ms..30ms, 10ms,20ms, exp:20ms, pareto:10ms:1.5, or normal:20ms:5ms
    #[arg(long, value_parser = draw::parse_gap, conflicts_with = "rate")]
    gap: Option<Dist>,
    /// Send by turns: how long on, as --gap is written
    #[arg(long, value_parser = draw::parse_gap, requires = "off", requires = "gap")]
    on: Option<Dist>,
    /// How long off
    #[arg(long, value_parser = draw::parse_gap, requires = "on")]
    off: Option<Dist>,
    /// File with a line for each packet: gap and size
    #[arg(long, conflicts_with_all = ["rate", "gap", "size"])]
    trace: Option<PathBuf>,
    /// Web pages: one connection after another, each with so many bytes, written as --size is; --think is between them
    #[arg(long, value_parser = draw::parse_pages, value_name = "SIZE", conflicts_with_all = ["rate", "gap", "trace", "bytes", "udp"])]
    pages: Option<Sizes>,
    /// From the end of a page to the next, written as --gap is [default: 0ns]
    #[arg(long, value_parser = draw::parse_gap, value_name = "GAP", requires = "pages")]
    think: Option<Dist>,
    /// Length of the flow
    #[arg(long = "for", value_parser = span, value_name = "TIME")]
    long: Option<Span>,
    /// Congestion control of TCP, e.g. reno
    #[arg(long)]
    cc: Option<String>,
    /// Maximum segment size, bytes
    #[arg(long)]
    mss: Option<u32>,
    /// Send buffer, bytes
    #[arg(long)]
    sndbuf: Option<usize>,
    /// Ask for ECN, or do not [default: as net.ipv4.tcp_ecn says] (needs root)
    #[arg(long, value_name = "BOOL", conflicts_with = "udp")]
    ecn: Option<bool>,
    /// Offer selective acknowledgements, or do not [default: as net.ipv4.tcp_sack says] (needs root)
    #[arg(long, value_name = "BOOL", conflicts_with = "udp")]
    sack: Option<bool>,
    /// ToS byte
    #[arg(long, default_value_t = 0)]
    tos: u8,
    /// Firewall mark (needs root)
    #[arg(long, default_value_t = 0)]
    mark: u32,
    /// Datagrams come back from penstock echo: measure round trips
    #[arg(long, requires = "udp")]
    echo: bool,
    /// Greatest error of the sender's clock, parts per 1,000,000
    #[arg(long, default_value_t = 0, hide = true, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    drift: u32,
    /// By how much each packet departs early or late at most
    #[arg(long, value_parser = span, hide = true)]
    jitter: Option<Span>,
    /// Keep each datagram's time
    #[arg(long, hide = true)]
    each: bool,
    /// Seed of random sizes and gaps
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Name of the stream of chance
    #[arg(long, default_value = "send", hide = true)]
    stream: String,
    /// Time between samples of TCP's window and round trip [default: none]
    #[arg(long, value_parser = span)]
    interval: Option<Span>,
    /// Moment that times are counted from, ns since 1970
    #[arg(long, default_value_t = 0, hide = true)]
    epoch: i64,
    /// Stop so long after the epoch
    #[arg(long, value_parser = span, hide = true)]
    until: Option<Span>,
    /// Count from so long after the epoch
    #[arg(long, value_parser = span, hide = true)]
    warmup: Option<Span>,
    /// Take no answer later than so long after the epoch
    #[arg(long, value_parser = span, hide = true)]
    end: Option<Span>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl SendArgs {
    fn load(&self) -> Result<Load> {
        let size = || self.size.clone().unwrap_or(Sizes::Constant(1200));
        if let Some(path) = &self.trace {
            let text = crate::check::text(path, &crate::check::read(path)?)?;
            return draw::trace(&text)
                .map(Load::Replay)
                .map_err(|e| anyhow::anyhow!("{}: {e}", path.display()));
        }
        if let Some(size) = &self.pages {
            let think = self.think.clone().unwrap_or(Dist::Constant(Span::ZERO));
            return Ok(Load::Pages { size: size.clone(), think });
        }
        Ok(match (self.bytes, self.rate, &self.gap) {
            (Some(bytes), ..) => Load::Bytes(bytes.bytes()),
            (_, Some(rate), _) => match size() {
                Sizes::Constant(size) => Load::Rate(rate, size),
                _ => bail!("a steady rate has packets of one size: write --size 160, or --gap for --rate"),
            },
            (_, _, Some(gap)) => match self.on.clone().zip(self.off.clone()) {
                Some((on, off)) => Load::OnOff { size: size(), gap: gap.clone(), on, off },
                None => Load::Packets { size: size(), gap: gap.clone() },
            },
            _ if self.udp => {
                bail!("datagrams need a rate or a gap: write --rate 1mbit, --gap 20ms or --trace FILE")
            }
            _ => Load::Greedy,
        })
    }
}

/// Sends a flow.
pub fn send(args: &SendArgs) -> Result<ExitCode> {
    let options = SendOptions {
        load: args.load()?,
        epoch_ns: args.epoch,
        until: args.until.or(args.long),
        interval: args.interval.unwrap_or(Span::ZERO),
        seed: args.seed,
        stream: args.stream.clone(),
        tos: args.tos,
        mark: args.mark,
        cc: args.cc.clone(),
        mss: args.mss,
        sndbuf: args.sndbuf,
        ecn: args.ecn,
        sack: args.sack,
        echo: args.echo,
        warmup: args.warmup.unwrap_or(Span::ZERO),
        end: args.end,
        drift_ppm: args.drift,
        jitter: args.jitter.unwrap_or(Span::ZERO),
        each: args.each,
    };
    if options.until.is_none() && !matches!(options.load, Load::Bytes(_) | Load::Replay(_)) {
        bail!("this flow has no end: write --for 10s");
    }
    let goal = Goal { host: args.host.clone(), port: args.port, udp: args.udp };
    let report = traffic::send(&goal, &options).map_err(anyhow::Error::msg)?;
    // A run of an experiment goes on without that connection, and reads of it in the report.
    if let Some(why) = report.failed.as_ref().filter(|_| args.end.is_none()) {
        bail!("{why}");
    }
    let text = if args.json { format!("{}\n", serde_json::to_string(&report)?) } else { sent(&report) };
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn distribution(name: &str, unit: &str, d: Option<Distribution>) -> String {
    d.map(|d| {
        format!(
            "{name} {unit}: min {:.3} mean {:.3} p50 {:.3} p95 {:.3} p99 {:.3} max {:.3}\n",
            d.min, d.mean, d.p50, d.p95, d.p99, d.max
        )
    })
    .unwrap_or_default()
}

fn sent(r: &SendReport) -> String {
    let mut text = format!("sent {} packets, {}\n", r.sent_packets, Unit::Byte.show(r.sent_bytes as f64));
    if let Some(again) = r.retransmitted_packets {
        text.push_str(&format!("retransmits {again}\n"));
    }
    let mut pages = r.transfers_ms.clone();
    text + &distribution("page", "ms", Distribution::of(&mut pages))
        + &distribution("late", "µs", r.late_us)
        + &distribution("round trip", "ms", r.rtt_ms)
}

/// What `penstock recv` takes.
#[derive(clap::Args)]
pub struct RecvArgs {
    /// Port
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Datagrams instead of TCP
    #[arg(long)]
    udp: bool,
    /// Stop after this time [default: at the end of the first connection]
    #[arg(long = "for", value_parser = span, value_name = "TIME")]
    long: Option<Span>,
    /// Receive buffer, bytes
    #[arg(long)]
    rcvbuf: Option<usize>,
    /// Congestion control of TCP, for what of it is the receiver's
    #[arg(long)]
    cc: Option<String>,
    /// Maximum segment size to announce, bytes
    #[arg(long)]
    mss: Option<u32>,
    /// Time between samples [default: none]
    #[arg(long, value_parser = span)]
    interval: Option<Span>,
    /// Moment that times are counted from, ns since 1970
    #[arg(long, default_value_t = 0, hide = true)]
    epoch: i64,
    /// Stop so long after the epoch
    #[arg(long, value_parser = span, hide = true)]
    until: Option<Span>,
    /// Count from so long after the epoch
    #[arg(long, value_parser = span, hide = true)]
    warmup: Option<Span>,
    /// Keep the port so long after time is up
    #[arg(long, value_parser = span, hide = true)]
    hold: Option<Span>,
    /// Send every datagram back
    #[arg(long, requires = "udp", hide = true)]
    echo: bool,
    /// Measure each sender by itself
    #[arg(long, hide = true)]
    each: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Receives.
pub fn recv(args: &RecvArgs) -> Result<ExitCode> {
    let options = RecvOptions {
        port: args.port,
        udp: args.udp,
        epoch_ns: args.epoch,
        until: args.until.or(args.long),
        interval: args.interval.unwrap_or(Span::ZERO),
        rcvbuf: args.rcvbuf,
        cc: args.cc.clone(),
        mss: args.mss,
        once: false,
        warmup: args.warmup.unwrap_or(Span::ZERO),
        hold: args.hold.unwrap_or(Span::ZERO),
        echo: args.echo,
        each: args.each,
    };
    if options.udp && options.until.is_none() {
        bail!("datagrams have no end: write --for 10s");
    }
    let report = traffic::recv(&options).map_err(anyhow::Error::msg)?;
    let text = if args.json { format!("{}\n", serde_json::to_string(&report)?) } else { received(&report) };
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn received(r: &RecvReport) -> String {
    let long = r.first_s.zip(r.last_s).map_or(0.0, |(from, to)| to - from);
    let rate =
        if long > 0.0 { Unit::BitPerSecond.show(r.bytes as f64 * 8.0 / long) } else { "–".to_owned() };
    let mut text =
        format!("received {} packets, {}, {rate}\n", r.received_packets, Unit::Byte.show(r.bytes as f64));
    if r.marked_packets + r.reordered_packets > 0 {
        text.push_str(&format!("marked {}, out of order {}\n", r.marked_packets, r.reordered_packets));
    }
    text + &distribution("one-way delay", "ms", r.owd_ms)
}

/// What `penstock echo` takes.
#[derive(clap::Args)]
pub struct EchoArgs {
    /// Port
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Stop after this time [default: never]
    #[arg(long = "for", value_parser = span, value_name = "TIME")]
    long: Option<Span>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Answers.
pub fn echo(args: &EchoArgs) -> Result<ExitCode> {
    let count = traffic::echo(args.port, args.long).map_err(anyhow::Error::msg)?;
    match args.json {
        true => crate::print(&format!("{}\n", serde_json::json!({ "answered_packets": count })))?,
        false => crate::print(&format!("answered {count} datagrams\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What a delay line takes.
#[derive(clap::Args)]
pub struct WireArgs {
    /// Seed of the losses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// DEV,DELAY_NS,LOSS_PPB of each end
    #[arg(required = true)]
    ports: Vec<Port>,
}

/// Carries frames until it is killed.
pub fn wire(args: &WireArgs) -> Result<ExitCode> {
    penstock_kernel::wire::run(&args.ports, args.seed).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}
