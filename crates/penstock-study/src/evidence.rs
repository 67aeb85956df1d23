//! What the runs of a study showed, in the form that claims are judged on.

use std::collections::BTreeMap;
use std::sync::Arc;

/// One program's run.
#[derive(Clone, Debug, Default)]
pub struct AppRun {
    /// Host it ran on.
    pub host: String,
    /// Its command line.
    pub run: String,
    /// Its name in the record.
    pub name: String,
    /// Exit status.
    pub exit: i32,
    /// What it printed, standard output and errors together.
    pub text: String,
    /// Throughput over the whole run, bit/s, where it measures one.
    pub throughput_bit_s: Option<f64>,
    /// Rows of its interval report: from, to (seconds), bit/s.
    pub intervals: Vec<(f64, f64, f64)>,
    /// Mean round-trip time, ms, where it measures one.
    pub rtt_mean_ms: Option<f64>,
    /// Requests sent and answers received, for ping.
    pub requests: Option<(u64, u64)>,
    /// Every round trip in order: when the answer came (seconds), ms.
    pub rtts: Vec<(f64, f64)>,
}

/// One flow's run.
#[derive(Clone, Debug, Default)]
pub struct FlowRun {
    /// Its name.
    pub name: String,
    /// The program it is of, by that one's name in the record.
    pub app: Option<String>,
    /// Packets sent, received, lost on the way.
    pub packets: (u64, u64, u64),
    /// Bytes of the frames (Ethernet header, no FCS) that were sent, that arrived.
    pub frame_bytes: (u64, u64),
    /// From when to when it lived, seconds.
    pub life: (f64, f64),
    /// Mean and greatest one-way delay, ms.
    pub owd_ms: Option<(f64, f64)>,
    /// New payload over time: seconds, bit/s.
    pub goodput: Vec<(f64, f64)>,
    /// New payload delivered, bytes.
    pub payload_bytes: u64,
    /// Round trips of an echo probe: when the answer came (seconds), ms.
    pub rtts: Vec<(f64, f64)>,
    /// Congestion window over time: seconds, segments.
    pub cwnd: Vec<(f64, f64)>,
    /// Each datagram in the order of sending, where the experiment has them traced: payload, sent, received (seconds).
    pub passages: Vec<(u32, f64, Option<f64>)>,
}

impl FlowRun {
    /// Rate of the arriving frames (Ethernet header, no FCS) over its life, bit/s.
    pub fn frame_rate(&self) -> f64 {
        self.frame_bytes.1 as f64 * 8.0 / (self.life.1 - self.life.0).max(f64::MIN_POSITIVE)
    }
    /// Rate of what arrived over its life where each packet counts as so many bytes, bit/s.
    pub fn counted_rate(&self, bytes: u32) -> f64 {
        (self.packets.1 * u64::from(bytes)) as f64 * 8.0 / (self.life.1 - self.life.0).max(f64::MIN_POSITIVE)
    }
    /// Rate that `ftp` and `ttcp` print, bit/s: kilobytes of 1024 bytes a second, taken for 1000 bytes.
    pub fn program_rate(&self) -> f64 {
        self.payload_bytes as f64 / 1024.0 * 8000.0 / (self.life.1 - self.life.0).max(f64::MIN_POSITIVE)
    }
    /// Mean of the goodput between two moments (seconds), bit/s.
    pub fn goodput_between(&self, from: f64, to: f64) -> f64 {
        mean(self.goodput.iter().filter(|p| p.0 > from && p.0 <= to).map(|p| p.1))
    }
    /// Share of its packets that were lost.
    pub fn loss(&self) -> f64 {
        self.packets.2 as f64 / (self.packets.0 as f64).max(1.0)
    }
}

/// Mean of numbers; 0 of none.
pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), x| (sum + x, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// Host, device, classid, quantity.
pub type ClassQuantity = (String, String, String, String);

/// One experiment's run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its flows: those of the file, then those of its programs.
    pub flows: Vec<FlowRun>,
    /// Counters of a class at the end: (host, device, classid) to packets, bytes, drops, borrowed.
    pub classes: BTreeMap<(String, String, String), [u64; 4]>,
    /// Packets dropped: host, device, place and reason to how many.
    pub drops: BTreeMap<(String, String, String, String), u64>,
    /// Share of each host's processor over time: seconds, 0 to 1.
    pub processor_over_time: BTreeMap<String, Vec<(f64, f64)>>,
    /// What cbq kept of a class over time: (host, device, classid, quantity) to samples.
    pub class_state: BTreeMap<ClassQuantity, Vec<(f64, f64)>>,
    /// How long it ran, seconds.
    pub duration: f64,
    /// Its programs in the order of the file.
    pub apps: Vec<AppRun>,
    /// Largest `qlen` seen of a qdisc while sampling: (host, device, handle) to packets.
    pub qlen_max: BTreeMap<(String, String, String), u64>,
    /// Throughput of a class over time: (host, device, classid) to samples of seconds and bit/s.
    pub class_rates: BTreeMap<(String, String, String), Vec<(f64, f64)>>,
    /// Share of each host's processor that packets took over the run, 0 to 1, where a cost was given.
    pub processor: BTreeMap<String, f64>,
}

/// All runs by experiment name. A lookup that finds nothing is an `Err` that says what is missing.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Runs by experiment.
    pub runs: BTreeMap<String, Arc<Run>>,
}

/// Why a claim cannot be judged.
pub type Missing = String;

impl Evidence {
    /// The run of an experiment.
    ///
    /// # Errors
    /// The experiment did not run.
    pub fn run(&self, experiment: &str) -> Result<&Run, Missing> {
        self.runs
            .get(experiment)
            .map(Arc::as_ref)
            .ok_or_else(|| format!("experiment {experiment} has not run"))
    }
    /// The `nth` run (from 0) of exactly this command line on a host.
    ///
    /// # Errors
    /// There is none.
    pub fn app(&self, experiment: &str, host: &str, run: &str, nth: usize) -> Result<&AppRun, Missing> {
        let found = self.run(experiment)?.apps.iter().filter(|a| a.host == host && a.run == run).nth(nth);
        found.ok_or_else(|| format!("{experiment}: `{run}` did not run on {host}"))
    }
    /// Throughput of a command, Mbit/s.
    ///
    /// # Errors
    /// It did not run or measured none.
    pub fn mbit(&self, experiment: &str, host: &str, run: &str) -> Result<f64, Missing> {
        let app = self.app(experiment, host, run, 0)?;
        let bits = app.throughput_bit_s;
        bits.map(|b| b / 1e6).ok_or_else(|| {
            format!("{experiment}: `{run}` on {host} measured no throughput: {}", app.text.trim())
        })
    }
    /// What of a command's connections reached the other end: bits of frames as a qdisc counts them (Ethernet header, no FCS), and in how
    /// many seconds.
    ///
    /// # Errors
    /// It did not run or sent nothing.
    pub fn reached(&self, experiment: &str, host: &str, run: &str) -> Result<(f64, f64), Missing> {
        let app = self.app(experiment, host, run, 0)?;
        let flows: Vec<&FlowRun> = self
            .run(experiment)?
            .flows
            .iter()
            .filter(|f| f.app.as_deref() == Some(app.name.as_str()))
            .collect();
        let from = flows.iter().map(|f| f.life.0).fold(f64::INFINITY, f64::min);
        let to = flows.iter().map(|f| f.life.1).fold(0.0, f64::max);
        if to <= from {
            return Err(format!("{experiment}: `{run}` on {host} sent nothing"));
        }
        Ok((flows.iter().map(|f| f.frame_bytes.1 as f64 * 8.0).sum(), to - from))
    }
    /// Mean round trip of the `nth` such command, ms.
    ///
    /// # Errors
    /// It did not run or got no answer.
    pub fn rtt(&self, experiment: &str, host: &str, run: &str, nth: usize) -> Result<f64, Missing> {
        let app = self.app(experiment, host, run, nth)?;
        app.rtt_mean_ms
            .ok_or_else(|| format!("{experiment}: `{run}` on {host} got no answer: {}", app.text.trim()))
    }
    /// Mean throughput of a class of U4's eth0 between two moments of the run (seconds), Mbit/s.
    ///
    /// # Errors
    /// It was not sampled then.
    pub fn class_mbit(&self, experiment: &str, classid: &str, from: f64, to: f64) -> Result<f64, Missing> {
        let key = ("U4".to_owned(), "eth0".to_owned(), classid.to_owned());
        let samples = self.run(experiment)?.class_rates.get(&key).map_or(&[][..], Vec::as_slice);
        let picked: Vec<f64> = samples.iter().filter(|s| s.0 > from && s.0 <= to).map(|s| s.1).collect();
        if picked.is_empty() {
            return Err(format!("{experiment}: class {classid} was not sampled between {from} and {to} s"));
        }
        Ok(picked.iter().sum::<f64>() / picked.len() as f64 / 1e6)
    }
    /// A flow of an experiment by its name.
    ///
    /// # Errors
    /// There is none.
    pub fn flow(&self, experiment: &str, name: &str) -> Result<&FlowRun, Missing> {
        let found = self.run(experiment)?.flows.iter().find(|f| f.name == name);
        found.ok_or_else(|| format!("{experiment}: there is no flow {name}"))
    }
    /// Counters of a class at the end: packets, bytes, drops, borrowed.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn class(&self, experiment: &str, host: &str, dev: &str, classid: &str) -> Result<[u64; 4], Missing> {
        let key = (host.to_owned(), dev.to_owned(), classid.to_owned());
        let found = self.run(experiment)?.classes.get(&key).copied();
        found.ok_or_else(|| format!("{experiment}: there is no class {classid} on {dev} of {host}"))
    }
    /// The objects in the `nth` output of a `tc -s … show` command.
    ///
    /// # Errors
    /// It did not run.
    pub fn tc(&self, experiment: &str, run: &str, nth: usize) -> Result<Vec<TcObject>, Missing> {
        Ok(tc_objects(&self.app(experiment, "U4", run, nth)?.text))
    }
}

/// One qdisc or class as `tc -s` printed it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcObject {
    /// Handle or classid as printed.
    pub id: String,
    /// Its first line.
    pub line: String,
    /// `Sent … bytes`.
    pub bytes: u64,
    /// `… pkt`.
    pub packets: u64,
    /// `dropped`.
    pub dropped: u64,
    /// `lended`.
    pub lended: u64,
    /// `borrowed`.
    pub borrowed: u64,
    /// `direct_packets_stat` of htb.
    pub direct: u64,
}

/// Reads what `tc -s qdisc|class show` printed.
pub fn tc_objects(text: &str) -> Vec<TcObject> {
    let mut objects: Vec<TcObject> = Vec::new();
    let after = |line: &str, word: &str| -> u64 {
        let mut words = line.split(|c: char| c.is_whitespace() || c == '(' || c == ',');
        words.find(|w| *w == word).and_then(|_| words.next()).and_then(|w| w.parse().ok()).unwrap_or(0)
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if matches!(words.first(), Some(&"qdisc" | &"class")) && words.len() > 2 {
            let direct = after(line, "direct_packets_stat");
            objects.push(TcObject {
                id: words[2].to_owned(),
                line: line.trim_end().to_owned(),
                direct,
                ..TcObject::default()
            });
        } else if let Some(object) = objects.last_mut() {
            match words.first() {
                Some(&"Sent") => {
                    object.bytes = after(line, "Sent");
                    object.packets = after(line, "bytes");
                    object.dropped = after(line, "dropped");
                }
                Some(&"lended:") => {
                    object.lended = after(line, "lended:");
                    object.borrowed = after(line, "borrowed:");
                }
                _ => {}
            }
        }
    }
    objects
}

/// The object with this id.
///
/// # Errors
/// There is none.
pub fn object<'a>(objects: &'a [TcObject], id: &str) -> Result<&'a TcObject, Missing> {
    objects.iter().find(|o| o.id == id).ok_or_else(|| format!("tc printed no {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tc_statistics() {
        let text = "qdisc htb 1: root refcnt 2 r2q 10 default 30 direct_packets_stat 7 ver 3.17\n Sent 36240254 bytes 23975 pkt (dropped 97, overlimits 48069 requeues 0) \
            \n backlog 0b 0p requeues 0 \nclass htb 1:10 parent 1:1 leaf 10: prio 0\n Sent 7 bytes 5 pkt (dropped 2, overlimits 0 requeues 0) \n rate 0bit 0pps backlog \
            0b 0p requeues 0 \n lended: 4 borrowed: 1 giants: 0\n";
        let o = tc_objects(text);
        assert_eq!(
            (o[0].id.as_str(), o[0].bytes, o[0].packets, o[0].dropped, o[0].direct),
            ("1:", 36_240_254, 23_975, 97, 7)
        );
        assert_eq!((o[1].id.as_str(), o[1].packets, o[1].lended, o[1].borrowed), ("1:10", 5, 4, 1));
        assert!(object(&o, "1:20").is_err());
    }
}
