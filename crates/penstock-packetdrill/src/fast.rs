//! TCP Fast Open of the machine's sockets.
//!
//! Follows: linux v6.12 net/ipv4/tcp_fastopen.c, net/ipv4/tcp.c `tcp_sendmsg_fastopen`.

use crate::net::{Kind, Net};
use crate::sys::Answer::{Error, Value};
use crate::sys::{Job, take_error};
use penstock_packet::{FastOpen, Tcp};
use penstock_tcp::fastopen::{self, Active, Syn};
use penstock_tcp::{SendFlags, State};

impl Net {
    /// Whether a SYN makes a connection by Fast Open, and the cookie of its answer.
    pub(crate) fn fast_verdict(
        &mut self,
        parent: usize,
        tcp: &Tcp,
        payload: u32,
    ) -> (bool, Option<FastOpen>) {
        let s = self.host.tcp_settings();
        let (src, dst) = (self.setting.remote, self.setting.local);
        let no_cookie = self.host.tcp_route_to(src).fastopen_no_cookie;
        let keys = if s.fastopen_keys.is_empty() { vec![[0; 16]] } else { s.fastopen_keys };
        let syn = Syn { option: tcp.fast_open(), data: payload > 0, src, dst };
        let verdict = self.socks[parent].fast.opens(s.fastopen, &keys, no_cookie, &syn, self.now);
        for name in verdict.counts.into_iter().flatten() {
            self.host.snmp_mut().bury_tcp(name, 1);
        }
        (verdict.child, verdict.reply)
    }
    /// How a connection to the peer is opened by Fast Open.
    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_fastopen_cookie_check
    pub fn active(&mut self, n: usize, bytes: u64) -> Active {
        let s = self.host.tcp_settings();
        let (local, remote, now) = (self.setting.local, self.setting.remote, self.now);
        let no_cookie = s.fastopen & fastopen::bits::CLIENT_NO_COOKIE != 0
            || self.socks[n].fast.no_cookie
            || self.host.tcp_route_to(remote).fastopen_no_cookie;
        let hole = self.hole.state(s.fastopen_blackhole_s, now);
        let row = self.host.tcp_metrics(0, local, remote, false, now).map(|row| *row);
        Active::new(bytes, row.as_ref(), hole, no_cookie)
    }
    /// What a connection has told of Fast Open, and where it stands in a queue of it.
    pub(crate) fn fast_told(&mut self, n: usize) {
        let (local, remote, now) = (self.setting.local, self.setting.remote, self.now);
        let sock = &mut self.socks[n];
        let Kind::Tcp(end) = &mut sock.kind else { return };
        let (learned, hole, works) = (end.take_learned(), end.take_blackhole(), end.fast_works_again());
        let closed = end.state() == State::Closed;
        let left = sock.fast_queued && (closed || !end.is_fast_child());
        sock.fast_queued &= !left;
        let (parent, reset) = (sock.parent, closed && sock.accepted);
        if let Some(queue) = parent.filter(|_| left).map(|p| &mut self.socks[p].fast) {
            queue.leaves(reset, now);
        }
        if let Some(learned) = learned {
            let jiffies = self.host.tcp_jiffies(now);
            if let Some(row) = self.host.tcp_metrics(0, local, remote, true, now) {
                learned.keep(&mut row.fast, jiffies);
            }
        }
        if hole && self.hole.seen(self.host.tcp_settings().fastopen_blackhole_s, now) {
            self.host.snmp_mut().bury_tcp("TcpExtTCPFastOpenBlackhole", 1);
        }
        if works {
            self.hole.works_again();
        }
    }
}

/// A call to write that opens the connection by Fast Open.
//= linux v6.12 net/ipv4/tcp.c tcp_sendmsg_fastopen; net/ipv4/af_inet.c __inet_stream_connect
pub(crate) fn send_fast(
    net: &mut Net,
    n: usize,
    bytes: u64,
    flags: SendFlags,
    waits: bool,
    unspecified: bool,
) -> Job {
    let setting = net.host.tcp_settings().fastopen;
    if setting & fastopen::bits::CLIENT == 0 || unspecified {
        return Job::Done(Error("EOPNOTSUPP"));
    }
    match &net.socks[n].kind {
        Kind::Fresh => {}
        Kind::Tcp(end) if matches!(end.state(), State::SynSent | State::SynReceived) => {
            return Job::Done(Error("EALREADY"));
        }
        // A call that did not wait has left it connecting, until the next is told that it is connected.
        Kind::Tcp(_) if net.socks[n].connecting => {
            net.socks[n].connecting = false;
            return Job::Write { n, left: bytes, took: 0, flags, waits, blocked: false, opens: false };
        }
        Kind::Tcp(_) => return Job::Done(Error("EISCONN")),
        Kind::Listens(_) | Kind::Gone => return Job::Done(Error("EINVAL")),
    }
    let how = net.active(n, bytes);
    let took = net.connect_by(n, Some(how));
    let Kind::Tcp(end) = &mut net.socks[n].kind else { return Job::Done(Error("EINVAL")) };
    if waits {
        end.set_write_pending(bytes > took);
        return Job::Write { n, left: bytes - took, took, flags, waits, blocked: false, opens: true };
    }
    if end.state() == State::Closed {
        return Job::Done(Error(take_error(net, n).unwrap_or("ECONNREFUSED")));
    }
    net.socks[n].connecting = true;
    Job::Done(if took > 0 { Value(took as i64) } else { Error("EINPROGRESS") })
}
