//! What the kernel's TCP says of a connection (`TCP_INFO`), read through `ss -tin`.

use std::process::Command;

/// A connection's state.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Info {
    /// Congestion window, packets.
    pub(crate) cwnd: u32,
    /// Slow-start threshold, packets; `None` while there is none.
    pub(crate) ssthresh: Option<u32>,
    /// Smoothed round trip, ms.
    pub(crate) srtt_ms: f64,
    /// Segments sent, data only.
    pub(crate) data_out: u64,
    /// Segments received, data only.
    pub(crate) data_in: u64,
    /// Segments retransmitted.
    pub(crate) retransmitted: u64,
}

/// The connection from this local port; `None` when `ss` or the connection is not there.
pub(crate) fn info(local_port: u16) -> Option<Info> {
    let out = Command::new("ss").args(["-tinH", "sport", "=", &format!(":{local_port}")]).output().ok()?;
    parse(&String::from_utf8_lossy(&out.stdout))
}

fn parse(text: &str) -> Option<Info> {
    let line = text.lines().find(|l| l.contains(" cwnd:"))?;
    let field = |name: &str| line.split_whitespace().find_map(|w| w.strip_prefix(name));
    let number = |name: &str| field(name).and_then(|v| v.parse::<u64>().ok());
    // retrans:NOW/TOTAL
    let again = field("retrans:").and_then(|v| v.split('/').nth(1)).and_then(|v| v.parse().ok());
    Some(Info {
        cwnd: number("cwnd:")? as u32,
        ssthresh: number("ssthresh:").map(|n| n as u32),
        srtt_ms: field("rtt:").and_then(|v| v.split('/').next()).and_then(|v| v.parse().ok()).unwrap_or(0.0),
        data_out: number("data_segs_out:").unwrap_or(0),
        data_in: number("data_segs_in:").unwrap_or(0),
        retransmitted: again.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn ss_is_read() {
        let text = "ESTAB 0 0 10.0.0.1:42 10.0.0.2:5001\n\t cubic wscale:7,7 rto:204 rtt:1.5/0.2 mss:1448 cwnd:10 ssthresh:7 bytes_sent:99 segs_out:5 segs_in:4 \
            data_segs_out:3 send 10Mbps retrans:0/2\n";
        let info = super::parse(text).unwrap();
        assert_eq!((info.cwnd, info.ssthresh, info.srtt_ms), (10, Some(7), 1.5));
        assert_eq!((info.data_out, info.data_in, info.retransmitted), (3, 0, 2));
        assert_eq!(super::parse(""), None);
    }
}
