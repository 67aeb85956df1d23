//! What this host's own queues hold of the connection's, and who waits for that to leave (TCP small queues).
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_small_queue_check`, `tcp_wfree`, `tcp_tsq_write`, `skb_still_in_host_queue`.
//! Differs: none known.

use penstock_model::Time;

/// How often softirqs are looked at again before ksoftirqd has them.
//= linux v6.12 kernel/softirq.c
const MAX_SOFTIRQ_RESTART: u32 = 10;

/// The account of it.
#[derive(Debug)]
pub(crate) struct InHost {
    // Parameters
    /// The caller tells what leaves ([`Config::device_accounting`](crate::Config::device_accounting)).
    accounted: bool,
    /// Memory of an skb beyond its data, bytes.
    overhead: u32,
    /// `tcp_limit_output_bytes`.
    limit: u32,
    // Variables
    /// Memory of what the host's queues hold of ours, bytes (`sk_wmem_alloc`).
    held: u64,
    /// Segments with data handed to the host so far, and those of them that have left it, modulo 2^32.
    given: u32,
    freed: u32,
    /// What was handed over last is among them.
    last_is_in: bool,
    /// Room has come free that was waited for (`TSQ_QUEUED`).
    tsq: bool,
    /// That held sending back (`TSQ_THROTTLED`).
    throttled: bool,
    /// How often that was heeded at this instant.
    rounds: u32,
    rounds_at: Time,
}

impl InHost {
    pub fn new(accounted: bool, overhead: u32, limit: u32) -> InHost {
        InHost {
            accounted,
            overhead,
            limit,
            held: 0,
            given: 0,
            freed: 0,
            last_is_in: false,
            tsq: false,
            throttled: false,
            rounds: 0,
            rounds_at: Time::ZERO,
        }
    }

    /// Whether the caller tells what leaves.
    #[inline]
    pub fn is_accounted(&self) -> bool {
        self.accounted
    }
    /// Memory of what is held, bytes.
    #[inline]
    pub fn held(&self) -> u64 {
        self.held
    }
    /// Memory of a segment with this much data (`skb->truesize`).
    #[inline]
    pub fn truesize(&self, len: u32) -> u64 {
        u64::from(len) + u64::from(self.overhead)
    }

    /// A segment with data is handed over.
    #[inline]
    pub fn hand(&mut self, len: u32) {
        if self.accounted && len > 0 {
            self.held += self.truesize(len);
            self.given = self.given.wrapping_add(1);
            self.last_is_in = true;
        }
    }
    /// The number of what was handed over last; that of one which has left, where it was dropped at once although the answer was good.
    #[inline]
    pub fn last_no(&self) -> u32 {
        if self.last_is_in { self.given } else { self.freed }
    }
    /// How many have left, modulo 2^32.
    pub fn freed(&self) -> u32 {
        self.freed
    }

    /// Whether as much is held as should be before another segment goes at `rate` bytes a second, where more than one is out.
    /// The socket itself counts for a byte.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_small_queue_check
    #[inline]
    pub fn is_full(&mut self, len: u32, rate: u64, bounded: bool, shift: u32, packets_out: u32) -> bool {
        // The rate over a millisecond, at least two segments, at most tcp_limit_output_bytes.
        let mut limit = (rate >> 10).max(2 * self.truesize(len));
        if bounded {
            limit = limit.min(self.limit.into());
        }
        let full = self.held + 1 > limit << shift && packets_out > 1;
        self.throttled |= full;
        full
    }
    /// Whether a short buffer of `len` bytes waits for what is held; then that lets it go.
    //= linux v6.12 net/ipv4/tcp.c tcp_should_autocork
    #[inline]
    pub fn corks(&mut self, len: u32, packets_out: u32) -> bool {
        let corks = len > 0 && packets_out > 0 && self.held + 1 > self.truesize(len);
        self.throttled |= corks;
        corks
    }
    /// Whether something waits for what is held.
    pub fn is_throttled(&self) -> bool {
        self.throttled
    }
    /// Something waits for what is held.
    pub fn throttle(&mut self) {
        self.throttled = true;
    }

    /// The segment handed over last was dropped in the host.
    pub fn last_dropped(&mut self) -> bool {
        let was = std::mem::take(&mut self.last_is_in);
        if was {
            self.dropped();
        }
        was
    }
    /// One that had waited was dropped: those behind it move up.
    pub fn dropped(&mut self) {
        self.given = self.given.wrapping_sub(1);
    }
    /// What is held has become so many pieces of memory more.
    pub fn cut(&mut self, more: u32) {
        if self.accounted {
            self.held += u64::from(more) * u64::from(self.overhead);
        }
    }
    /// The first of them has left.
    #[inline]
    pub fn left(&mut self) {
        self.freed = self.freed.wrapping_add(1);
    }
    /// The memory of a segment with so much data comes free.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_wfree, tcp_tsq_handler
    #[inline]
    pub fn release(&mut self, bytes: u32, now: Time) {
        self.held = self.held.saturating_sub(self.truesize(bytes));
        // The tasklet comes when what is under way is done. One that its own drops have called again and again has become ksoftirqd's,
        // and there a socket waits for what it has queued.
        let again = self.rounds_at == now && self.rounds >= MAX_SOFTIRQ_RESTART;
        let ksoftirqd = again && self.held >= self.truesize(1);
        if self.throttled && !ksoftirqd {
            self.throttled = false;
            self.tsq = true;
        }
    }
    /// Whether [`InHost::take_tsq`] has anything to tell.
    #[inline]
    pub fn owes_tsq(&self) -> bool {
        self.tsq
    }
    /// Whether room has come free that was waited for; asked once.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_tsq_write
    #[inline]
    pub fn take_tsq(&mut self, now: Time) -> bool {
        if !self.tsq {
            return false;
        }
        self.tsq = false;
        if self.rounds_at != now {
            (self.rounds_at, self.rounds) = (now, 0);
        }
        self.rounds += 1;
        true
    }
}
