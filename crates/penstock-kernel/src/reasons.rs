//! Why the kernel dropped packets, in its own words (`enum skb_drop_reason`), where tracefs is mounted.
//!
//! An instance of its own of the kernel's tracing notes the event `skb:kfree_skb` while a run lasts. The event knows no namespace: what is
//! counted is the whole machine's.

use crate::names::{TRACING, instance};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const EVENT: &str = "events/skb/kfree_skb";
/// Reasons up to 2 say nothing: consumed, not specified.
const FILTER: &str = "reason > 2";
/// Buffer of each processor, KiB: some 60,000 events.
const BUFFER_KB: &str = "8192";

/// The tracing of one run; taken away when dropped.
pub(crate) struct Reasons(PathBuf);

impl Reasons {
    /// Begins to note, under the token of the job; `None` where tracefs is not mounted or has no such event.
    pub(crate) fn start(token: &str) -> Option<Reasons> {
        let root = TRACING.iter().find(|r| Path::new(r).join(EVENT).join("enable").exists())?;
        let folder = instance(root, token);
        fs::create_dir(&folder).ok()?;
        let reasons = Reasons(folder);
        let event = reasons.0.join(EVENT);
        fs::write(reasons.0.join("buffer_size_kb"), BUFFER_KB).ok()?;
        fs::write(event.join("filter"), FILTER).ok()?;
        fs::write(event.join("enable"), "1").ok()?;
        Some(reasons)
    }
    /// What was noted so far: reason and packets.
    pub(crate) fn counted(&self) -> BTreeMap<String, u64> {
        let _ = fs::write(self.0.join(EVENT).join("enable"), "0");
        count(&String::from_utf8_lossy(&fs::read(self.0.join("trace")).unwrap_or_default()))
    }
}

impl Drop for Reasons {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn count(trace: &str) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for line in trace.lines().filter(|l| l.contains(" kfree_skb: ")) {
        if let Some((_, reason)) = line.rsplit_once("reason: ") {
            *all.entry(reason.trim().to_owned()).or_default() += 1;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #[test]
    fn events_are_counted_by_reason() {
        let trace = "# tracer: nop\n#\n  iperf-7  [000] b..2. 1.5: kfree_skb: skbaddr=0 rx_sk=0 protocol=2048 location=__dev_xmit_skb+0x1 reason: QDISC_DROP\n  a-1 [001] \
            ..s1. 1.6: kfree_skb: skbaddr=0 rx_sk=0 protocol=2048 location=udp_rcv+0x2 reason: NO_SOCKET\n  iperf-7  [000] b..2. 1.7: kfree_skb: skbaddr=0 rx_sk=0 \
            protocol=2048 location=__dev_xmit_skb+0x1 reason: QDISC_DROP\n";
        let all = super::count(trace);
        assert_eq!(all.into_iter().collect::<Vec<_>>(), [("NO_SOCKET".into(), 1), ("QDISC_DROP".into(), 2)]);
    }
}
