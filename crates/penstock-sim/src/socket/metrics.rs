//! What a machine keeps of its connections (`ip tcp_metrics`): read when one opens, written when one is over.
//!
//! Follows: linux v6.12 net/ipv4/tcp_metrics.c `tcp_get_metrics`, `tcp_init_metrics`, `tcp_update_metrics`.
//! Differs: a machine keeps the rows of all pairs of addresses; Linux gives up the oldest where more than five meet in a place of its table of 8192 or 16384. A machine of 2.6.35 keeps none.

use super::*;
use penstock_model::tcp_metrics::Metric;

impl Net {
    /// A connection may open with the segment at hand: it gets to know what is kept.
    #[cold]
    pub(super) fn know_metrics(&mut self, sock: u32) {
        let s = &mut self.sockets[sock];
        let machine = &mut self.machines[s.host as usize];
        let Kind::Tcp(t) = &mut s.kind else { return };
        if machine.stack != Stack::Linux {
            return;
        }
        let now = self.queue.now();
        let row = machine.host.tcp_metrics(s.opts.bound, s.local.0, s.remote.0, false, now);
        let row = row.map(|row| *row);
        t.end.know(row.as_ref(), machine.host.keeps_ssthresh());
    }
    /// A connection is over: what it has learned is kept.
    #[cold]
    pub(super) fn keep_metrics(&mut self, sock: u32) {
        let s = &self.sockets[sock];
        let machine = &mut self.machines[s.host as usize];
        let Kind::Tcp(t) = &s.kind else { return };
        let keeps = machine.stack == Stack::Linux && machine.kernel != Kernel::V2_6_35;
        if !keeps || !machine.host.keeps_metrics() {
            return;
        }
        let (now, ssthresh, learned) = (self.queue.now(), machine.host.keeps_ssthresh(), t.end.has_learned());
        let row = machine.host.tcp_metrics(s.opts.bound, s.local.0, s.remote.0, learned, now);
        match row {
            Some(row) if learned => t.end.leave(row, ssthresh),
            // It learned nothing of the round trip, and what was kept of it counts no more.
            Some(row) => row.learn(Metric::Rtt, 0),
            None => {}
        }
    }
}
