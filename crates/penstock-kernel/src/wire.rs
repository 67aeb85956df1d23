//! A delay line in a process of its own, for kernels without `netem`: carries frames between the devices of one namespace, each
//! after its delay, loses some by chance, and learns behind which device an address is, as a switch does.

use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike,
    bind, recvmsg, send, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};
use penstock_model::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::io::{IoSliceMut, Write as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// A device of the line and what the frames that come in there suffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Device.
    pub dev: String,
    /// Delay, ns.
    pub delay_ns: i64,
    /// Chance of loss, parts per 1,000,000,000.
    pub loss_ppb: u32,
}

impl std::str::FromStr for Port {
    type Err = String;

    /// `DEV,DELAY_NS,LOSS_PPB`.
    fn from_str(text: &str) -> Result<Port, String> {
        let bad = || format!("\"{text}\" is not DEV,DELAY_NS,LOSS_PPB");
        let mut parts = text.split(',');
        let (Some(dev), Some(delay), Some(loss)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(bad());
        };
        let delay_ns = delay.parse().map_err(|_| bad())?;
        Ok(Port { dev: dev.to_owned(), delay_ns, loss_ppb: loss.parse().map_err(|_| bad())? })
    }
}

/// `sll_pkttype` of a frame that this machine itself sends.
const OUTGOING: u8 = 4;
/// Frames on the way at once from one port.
const MAX_IN_FLIGHT: usize = 65_536;
/// How long before its time a frame is waited for by reading the clock, ns.
const SPIN: i64 = 30_000;

struct Waiting {
    due: i64,
    frame: Vec<u8>,
}

fn now() -> i64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |t| t.num_nanoseconds())
}

fn open(dev: &str) -> Result<OwnedFd, String> {
    let say = |what: &str, e: nix::Error| format!("{dev}: {what}: {e}");
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)
        .map_err(|e| say("socket", e))?;
    let mut all = getifaddrs().map_err(|e| say("getifaddrs", e))?;
    let addr: Option<LinkAddr> = all.find_map(|a| {
        let link = *a.address.as_ref()?.as_link_addr()?;
        (a.interface_name == dev && link.family() == Some(AddressFamily::Packet)).then_some(link)
    });
    let addr = addr.ok_or_else(|| format!("there is no device {dev}"))?;
    setsockopt(&fd, sockopt::ReceiveTimestampns, &true).map_err(|e| say("timestamps", e))?;
    // Room for a burst while the process waits for a processor; the kernel may give less.
    let _ = setsockopt(&fd, sockopt::RcvBufForce, &(8 << 20));
    bind(fd.as_raw_fd(), &addr).map_err(|e| say("bind", e))?;
    Ok(fd)
}

/// Carries frames until it is killed.
///
/// # Errors
/// A device that is not there, or no right to packet sockets.
pub fn run(ports: &[Port], seed: u64) -> Result<(), String> {
    let _ = nix::sys::prctl::set_timerslack(1);
    let sockets: Vec<OwnedFd> = ports.iter().map(|p| open(&p.dev)).collect::<Result<_, _>>()?;
    let mut queues: Vec<VecDeque<Waiting>> = ports.iter().map(|_| VecDeque::new()).collect();
    let mut dice: Vec<Rng> = ports.iter().map(|p| Rng::named(seed, &format!("wire/{}", p.dev))).collect();
    let mut known: BTreeMap<[u8; 6], usize> = BTreeMap::new();
    println!("ready");
    std::io::stdout().flush().map_err(|e| e.to_string())?;
    let mut buffer = vec![0u8; 70_000];
    let mut control: Vec<u8> = nix::cmsg_space!(TimeSpec);
    control.resize(control.capacity(), 0);
    loop {
        for (i, port) in ports.iter().enumerate() {
            while let Some((len, when)) = receive(&sockets[i], &mut buffer, &mut control[..]) {
                let Some(len) = len else { continue };
                if let Some(source) = buffer.get(6..12).and_then(|b| <[u8; 6]>::try_from(b).ok()) {
                    known.insert(source, i);
                }
                let lost = port.loss_ppb > 0 && dice[i].below(1_000_000_000) < port.loss_ppb;
                if !lost && queues[i].len() < MAX_IN_FLIGHT {
                    queues[i].push_back(Waiting { due: when + port.delay_ns, frame: buffer[..len].to_vec() });
                }
            }
        }
        let t = now();
        let mut next: Option<i64> = None;
        for (i, queue) in queues.iter_mut().enumerate() {
            while queue.front().is_some_and(|w| w.due <= t) {
                let Some(waiting) = queue.pop_front() else { break };
                deliver(i, &waiting.frame, &sockets, &known);
            }
            if let Some(first) = queue.front() {
                next = Some(next.map_or(first.due, |n| n.min(first.due)));
            }
        }
        let wait = next.map(|n| n - now());
        if wait.is_some_and(|w| w < SPIN) {
            continue;
        }
        let mut polled: Vec<PollFd<'_>> =
            sockets.iter().map(|s| PollFd::new(s.as_fd(), PollFlags::POLLIN)).collect();
        // An interrupted wait is as good as one that ended.
        let _ = ppoll(&mut polled, wait.map(|w| TimeSpec::nanoseconds(w - SPIN)), None);
    }
}

/// One frame: its length (`None` for one to ignore) and when the kernel saw it.
fn receive(fd: &OwnedFd, buffer: &mut [u8], control: &mut [u8]) -> Option<(Option<usize>, i64)> {
    let mut parts = [IoSliceMut::new(buffer)];
    let got = recvmsg::<LinkAddr>(fd.as_raw_fd(), &mut parts, Some(control), MsgFlags::MSG_DONTWAIT).ok()?;
    let stamp = got.cmsgs().ok().and_then(|mut all| {
        all.find_map(|m| match m {
            ControlMessageOwned::ScmTimestampns(t) => Some(t.num_nanoseconds()),
            _ => None,
        })
    });
    let own = got.address.is_none_or(|a| a.pkttype() == OUTGOING);
    Some(((!own && got.bytes >= 14).then_some(got.bytes), stamp.unwrap_or_else(now)))
}

/// Sends a frame where its receiver is known to be, else to all others.
fn deliver(from: usize, frame: &[u8], sockets: &[OwnedFd], known: &BTreeMap<[u8; 6], usize>) {
    let to = <[u8; 6]>::try_from(&frame[..6]).ok().and_then(|a| known.get(&a).copied());
    for (i, socket) in sockets.iter().enumerate() {
        if i != from && to.is_none_or(|to| to == i) {
            // A full queue of the device is counted there.
            let _ = send(socket.as_raw_fd(), frame, MsgFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read() {
        assert_eq!("w0,280000,5".parse(), Ok(Port { dev: "w0".into(), delay_ns: 280_000, loss_ppb: 5 }));
        assert!("w0".parse::<Port>().unwrap_err().contains("is not DEV,DELAY_NS,LOSS_PPB"));
        assert!("w0,x,1".parse::<Port>().is_err());
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let port = Port { dev: "nodev0".into(), delay_ns: 0, loss_ppb: 0 };
        let said = run(&[port], 1).unwrap_err();
        assert!(said.contains("nodev0"), "{said}");
    }
}
