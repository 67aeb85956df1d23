//! `penstock echo`: sends every datagram back.

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::{TimeSpec, TimeValLike};
use penstock_model::Span;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Instant;

/// Answers on a port for so long, or (`None`) until it is killed; how many it answered.
///
/// # Errors
/// The port is taken.
pub fn echo(port: u16, long: Option<Span>) -> Result<u64, String> {
    let socket = UdpSocket::bind(("0.0.0.0", port)).map_err(|e| format!("port {port}: {e}"))?;
    socket.set_nonblocking(true).map_err(|e| format!("socket: {e}"))?;
    let begin = Instant::now();
    let mut buffer = vec![0u8; 65_536];
    let mut count = 0;
    loop {
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            // An answer that cannot be sent is one that is lost.
            count += u64::from(socket.send_to(&buffer[..len], from).is_ok());
        }
        let left = match long {
            Some(long) => long.as_ns() - begin.elapsed().as_nanos() as i64,
            None => 1_000_000_000,
        };
        if left <= 0 {
            return Ok(count);
        }
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        // An interrupted wait is as good as one that ended.
        let _ = ppoll(&mut polled, Some(TimeSpec::nanoseconds(left.min(1_000_000_000))), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Goal, SendOptions, send};
    use penstock_model::traffic::{Dist, Load, Sizes};

    #[test]
    fn round_trips_are_measured() {
        let port = 30_001 + (std::process::id() % 10_000) as u16;
        let server = std::thread::spawn(move || echo(port, Some(Span::from_ms(250))));
        std::thread::sleep(std::time::Duration::from_millis(20));
        let load = Load::Packets { size: Sizes::Constant(64), gap: Dist::Constant(Span::from_ms(10)) };
        let options =
            SendOptions { load, until: Some(Span::from_ms(100)), echo: true, ..SendOptions::default() };
        let report = send(&Goal { host: "127.0.0.1".into(), port, udp: true }, &options).unwrap();
        assert_eq!(server.join().unwrap(), Ok(report.sent_packets));
        assert!(report.rtt_ms.is_some_and(|d| d.min > 0.0), "{report:?}");
    }
}
