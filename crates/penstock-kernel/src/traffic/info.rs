//! What the kernel's TCP says of a connection: `TCP_INFO` (`struct tcp_info` of include/uapi/linux/tcp.h, `tcp_get_info`).

use nix::libc;
use nix::sys::socket::{getsockopt, sockopt::GetStruct};
use std::os::fd::AsFd;

/// A connection's state. Of one that has ended what stood at its end, as long as its socket is open.
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

/// 32-bit words of `struct tcp_info` up to `tcpi_data_segs_out`, which every Linux from 4.6 on has.
const WORDS: usize = 40;
const RTT: usize = 17;
const SSTHRESH: usize = 19;
const CWND: usize = 20;
const TOTAL_RETRANS: usize = 25;
const DATA_SEGS_IN: usize = 38;
const DATA_SEGS_OUT: usize = 39;

#[derive(Clone, Copy)]
struct TcpInfo;

nix::getsockopt_impl!(TcpInfo, libc::IPPROTO_TCP, libc::TCP_INFO, [u32; WORDS], GetStruct<[u32; WORDS]>);

/// Of a connection; `None` when the kernel does not say.
pub(crate) fn info(socket: &impl AsFd) -> Option<Info> {
    getsockopt(socket, TcpInfo).ok().map(read)
}

fn read(words: [u32; WORDS]) -> Info {
    Info {
        cwnd: words[CWND],
        // As `ss` has it: greater ones are none.
        ssthresh: Some(words[SSTHRESH]).filter(|n| *n < 0xffff),
        srtt_ms: f64::from(words[RTT]) / 1e3,
        data_out: words[DATA_SEGS_OUT].into(),
        data_in: words[DATA_SEGS_IN].into(),
        retransmitted: words[TOTAL_RETRANS].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::info;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Two ends of this process on the loopback device, against what they did.
    #[test]
    fn a_connection_is_read_and_still_after_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut taken, _) = listener.accept().unwrap();
        let fresh = info(&out).unwrap();
        assert_eq!((fresh.cwnd, fresh.ssthresh, fresh.data_out, fresh.retransmitted), (10, None, 0, 0));
        out.write_all(b"segment").unwrap();
        taken.read_exact(&mut [0; 7]).unwrap();
        drop(taken);
        assert_eq!(out.read(&mut [0]).unwrap(), 0);
        let _ = out.shutdown(std::net::Shutdown::Write);
        let end = info(&out).unwrap();
        assert_eq!((end.data_out, end.data_in, end.retransmitted), (1, 0, 0));
        assert!(end.srtt_ms > 0.0 && end.srtt_ms < 10_000.0, "{end:?}");
    }
}
