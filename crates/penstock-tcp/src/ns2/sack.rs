//! The agent with selective acknowledgements: a pipe and a scoreboard.
//!
//! Follows: ns-2.35 tcp/tcp-sack1.cc.
//! Differs: none known.

use super::agent::{Ack, Agent, DUPACKS};

impl Agent {
    //= ns-2.35 tcp/tcp-sack1.cc send_much
    pub(super) fn send_much_sack(&mut self, burst: u32) {
        let wnd = i64::from(self.o.window);
        let mut win = self.window();
        let mut sent = 0;
        loop {
            let open = if self.fast_recovery {
                self.pipe < i64::from(self.cwnd())
            } else {
                self.t_seqno <= self.last_ack + win
            };
            if !open || self.last_ack + 1 >= self.curseq {
                return;
            }
            let hole = self.board.next_retransmission();
            let no = if let Some(no) = hole {
                if self.recover <= 0 || no > self.highest_ack + wnd {
                    return;
                }
                self.board.retransmitted(no);
                win = self.window();
                no
            } else {
                let reach = if self.fast_recovery { wnd } else { win };
                if self.t_seqno > self.highest_ack + reach || self.t_seqno >= self.curseq {
                    return;
                }
                self.t_seqno += 1;
                self.t_seqno - 1
            };
            self.output(no);
            self.t_seqno = self.t_seqno.max(no + 1);
            sent += 1;
            self.pipe += 1;
            if sent == burst {
                return;
            }
        }
    }

    pub(super) fn begin_sack_recovery(&mut self) {
        self.pipe = self.maxseq - self.highest_ack - i64::from(DUPACKS);
        self.reset_timer(true, false);
        self.fast_recovery = true;
        self.board.retransmitted(self.highest_ack + 1);
    }

    //= ns-2.35 tcp/tcp-sack1.cc recv
    pub(super) fn recv_sack(&mut self, ack: &Ack<'_>) {
        if !self.fast_recovery {
            if ack.no > self.last_ack {
                self.first_partial = false;
                self.new_ack_grows(ack);
                self.timed_out = false;
                self.board.clear();
            } else if ack.no == self.last_ack
                && !self.timed_out
                && self.board.update(self.highest_ack, ack.sacks)
            {
                self.dupacks += 1;
                if self.dupacks == DUPACKS {
                    self.dupack_action();
                } else if self.dupacks < DUPACKS && self.o.limited_transmit {
                    self.send_one();
                }
            }
            if self.dupacks == 0 {
                self.send_much(self.now, ack.curseq, 0);
            }
            return;
        }
        self.pipe -= 1;
        if ack.no >= self.recover {
            self.recover = 0;
            self.fast_recovery = false;
            self.new_ack(ack);
            self.timed_out = false;
            self.board.clear();
        } else if ack.no > self.highest_ack {
            self.highest_ack = ack.no;
            self.board.update(self.highest_ack, ack.sacks);
            if self.o.partial_ack {
                self.partial_ack_sack();
                self.pipe += 1;
                if !self.first_partial {
                    self.new_timer(ack.no);
                    self.backoff = 1;
                    self.first_partial = true;
                }
            } else {
                self.pipe -= 1;
                self.new_timer(ack.no);
                self.backoff = 1;
            }
        } else if !self.timed_out && self.board.update(self.highest_ack, ack.sacks) && self.dupacks > 0 {
            self.dupacks += 1;
        }
        self.send_much(self.now, ack.curseq, 0);
    }

    /// Two packets for a partial ACK, so as not to be slower than slow start.
    //= ns-2.35 tcp/tcp-sack1.cc partial_ack_action
    fn partial_ack_sack(&mut self) {
        self.next_pkt = self.next_pkt.max(self.highest_ack + 1);
        for _ in 0..2 {
            if let Some(no) = self.board.next_hole(self.next_pkt) {
                self.next_pkt = self.next_pkt.max(no.0);
            }
            if self.next_pkt >= self.curseq {
                return;
            }
            self.t_seqno = self.t_seqno.max(self.next_pkt);
            self.output(self.next_pkt);
            self.board.retransmitted(self.next_pkt);
            self.next_pkt += 1;
        }
    }
}
