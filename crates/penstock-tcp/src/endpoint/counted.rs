//! What a connection adds to the counters of its machine.
//!
//! Follows: linux v6.12 net/ipv4/tcp.c `tcp_set_state`, `tcp_done`, net/ipv4/tcp_timer.c `tcp_write_err`, net/ipv4/tcp_minisocks.c `tcp_check_req`; and, for what is
//! told from other variables, where these are raised.
//! Differs: as `mib`.

use super::Endpoint;
use crate::info::{Error, State};
use crate::mib::Tx;

impl Endpoint {
    /// The connection is about to end.
    pub(super) fn count_end(&mut self, error: Option<Error>) {
        let mib = &mut self.tx.mib;
        match self.state {
            State::SynSent => mib.one(Tx::AttemptFails),
            State::SynReceived if error == Some(Error::Refused) => {
                mib.one(Tx::AttemptFails);
                mib.one(Tx::EmbryonicRsts);
            }
            State::Established | State::CloseWait => mib.one(Tx::EstabResets),
            _ => {}
        }
        if error == Some(Error::TimedOut) && self.state != State::SynReceived {
            mib.one(Tx::AbortOnTimeout);
        }
    }

    /// Tells each counter that is not 0, by its name in `nstat`; segments that came are counted by whom they come to.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_transmit_skb, tcp_make_synack (OutSegs), __tcp_retransmit_skb (RetransSegs)
    //= linux v6.12 net/ipv4/tcp_input.c tcp_newly_delivered
    pub fn counted(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let n = &self.tx.n;
        let w = self.tx.cc.window();
        // What goes again is not among those sent, but for a SYN-ACK; that it arrived is not among those delivered.
        let passive = self.synacks > 0;
        let again = n.total_retrans - self.synacks.saturating_sub(1).min(n.total_retrans);
        let opened = passive && self.state != State::SynReceived && w.delivered > 0;
        let sums = [
            ("TcpOutSegs", n.segs_out.saturating_sub(again)),
            ("TcpRetransSegs", n.total_retrans),
            ("TcpCurrEstab", u64::from(matches!(self.state, State::Established | State::CloseWait))),
            ("TcpExtTCPDelivered", w.delivered - u64::from(opened)),
            ("TcpExtTCPDeliveredCE", w.delivered_ce),
            ("TcpExtTCPLostRetransmit", self.tx.q.lost_again().into()),
        ];
        let hystart = w.hystart.counted();
        for (name, n) in sums.into_iter().chain(hystart).filter(|(_, n)| *n > 0) {
            tell(name, n);
        }
        self.tx.mib.tell(tell);
        self.rx.mib.tell(tell);
    }
}
