//! Loss and its repair, by the numbers of the RFCs.

use crate::pair;
use pair::*;
use penstock_model::{Kernel, Span};
use penstock_packet::TcpFlags;
use penstock_tcp::{Buffer, CaState, Config, Error, State};

fn linux(cc: &str) -> Config {
    let mut cfg = Config::linux(Kernel::V6_12);
    cfg.set_cc(cc).unwrap();
    cfg
}

/// Spans between the times at which A sent, rounded to seconds.
fn gaps_s(sent: &[Sent]) -> Vec<i64> {
    sent.windows(2).map(|w| ((w[1].at - w[0].at).as_ns() + 500_000_000) / 1_000_000_000).collect()
}

#[test]
fn a_syn_is_repeated_and_given_up() {
    // 6.12: four at even intervals, then doubling; ETIMEDOUT.
    let mut p = Pair::new(&linux("reno"), &linux("reno"));
    p.fate = Box::new(|_, _, _| Fate::Drop);
    p.run_for(Span::from_secs(300));
    assert_eq!(gaps_s(&p.log), [1, 1, 1, 1, 1, 2, 4, 8, 16, 32]);
    assert_eq!((p.a().state(), p.a().error()), (State::Closed, Some(Error::TimedOut)));
    // 2.6.35: three seconds, doubling, five times.
    let old = Config::linux(Kernel::V2_6_35);
    let mut p = Pair::new(&old, &old);
    p.fate = Box::new(|_, _, _| Fate::Drop);
    p.run_for(Span::from_secs(300));
    assert_eq!(gaps_s(&p.log), [3, 6, 12, 24, 48]);
    assert_eq!(p.a().error(), Some(Error::TimedOut));
}

#[test]
fn a_syn_ack_is_repeated() {
    let mut p = Pair::new(&linux("reno"), &linux("reno"));
    p.fate = Box::new(|from, _, _| if from == B { Fate::Drop } else { Fate::Pass });
    p.run_for(Span::from_ms(900));
    assert_eq!(p.log.iter().filter(|s| s.from == B).count(), 1);
    p.run_for(Span::from_ms(400));
    // One by its own timer, one in answer to the SYN again.
    assert_eq!(p.log.iter().filter(|s| s.from == B && s.has(TcpFlags::SYN)).count(), 3);
}

#[test]
fn the_timeout_doubles() {
    // RFC 6298 section 5.5: RTO, 2 RTO, 4 RTO, …; a first RTT of 20 ms gives 220 ms.
    let mut cfg = linux("reno");
    cfg.sack = false; // no tail loss probe
    let mut p = Pair::new(&cfg, &cfg).open();
    p.fate = Box::new(|_, _, _| Fate::Drop);
    p.apps[A].to_write = 100;
    p.run_for(Span::from_secs(15));
    let sent = p.data();
    let gaps: Vec<i64> = sent.windows(2).map(|w| w[1].ms() - w[0].ms()).collect();
    for (i, gap) in gaps.iter().take(6).enumerate() {
        let ideal = 220 << i;
        assert!((ideal..=ideal + ideal / 8 + 8).contains(gap), "{gaps:?}");
    }
    assert_eq!(p.a().info().ca_state, CaState::Loss);
    assert_eq!(p.a().cwnd(), 1);
}

#[test]
fn three_duplicates_start_fast_retransmit() {
    for sack in [true, false] {
        for kernel in Kernel::ALL {
            let mut cfg = Config::linux(kernel);
            cfg.set_cc("reno").unwrap();
            cfg.sack = sack;
            let mut p = Pair::new(&cfg, &cfg).open();
            p.drop_data(&[10]);
            p.apps[A].to_write = 200 * 1448;
            p.run_for(Span::from_secs(5));
            assert_eq!(p.apps[B].read, 200 * 1448);
            let again = p.again();
            assert_eq!(again.len(), 1, "{kernel} sack {sack}");
            // Not later than a round trip and a half after the original.
            let first = p.data()[10];
            assert_eq!(again[0].t.tcp.seq, first.t.tcp.seq);
            assert!(again[0].ms() - first.ms() < 45, "{kernel} sack {sack} {}", again[0].ms() - first.ms());
            assert_eq!(p.a().info().recoveries, 1);
            assert_eq!(p.a().info().timeouts, 0);
            let i = p.a().info();
            assert!(i.ssthresh < 30, "{i:?}");
        }
    }
}

#[test]
fn sack_repairs_many_losses_in_a_round_trip() {
    for kernel in Kernel::ALL {
        let mut cfg = Config::linux(kernel);
        cfg.set_cc("reno").unwrap();
        cfg.initial_window = 40;
        cfg.sndbuf = Buffer::Fixed(1 << 20);
        // The receiver of 2.6.35 would not offer window enough.
        let mut p = Pair::new(&cfg, &linux("reno")).open();
        p.drop_data(&[1, 5, 9, 13]);
        p.apps[A].to_write = 40 * 1448;
        p.run_for(Span::from_secs(3));
        assert_eq!(p.apps[B].read, 40 * 1448);
        let again = p.again();
        assert_eq!(again.len(), 4, "{kernel}");
        assert!(
            again[3].ms() - again[0].ms() <= 22,
            "{kernel} {:?}",
            again.iter().map(Sent::ms).collect::<Vec<_>>()
        );
        assert_eq!(p.a().info().timeouts, 0);
    }
}

#[test]
fn newreno_repairs_one_loss_a_round_trip() {
    // RFC 6582: each partial ACK brings the next hole.
    for kernel in Kernel::ALL {
        let mut cfg = Config::linux(kernel);
        cfg.set_cc("reno").unwrap();
        cfg.sack = false;
        cfg.initial_window = 40;
        cfg.sndbuf = Buffer::Fixed(1 << 20);
        // The receiver of 2.6.35 would not offer window enough.
        let mut p = Pair::new(&cfg, &linux("reno")).open();
        p.drop_data(&[1, 5, 9, 13]);
        p.apps[A].to_write = 40 * 1448;
        p.run_for(Span::from_secs(3));
        assert_eq!(p.apps[B].read, 40 * 1448);
        let again = p.again();
        assert_eq!(again.len(), 4, "{kernel}");
        for w in again.windows(2) {
            assert!((19..=24).contains(&(w[1].ms() - w[0].ms())), "{kernel} {again:?}");
        }
        assert_eq!(p.a().info().timeouts, 0, "{kernel}");
    }
}

#[test]
fn a_lost_tail_is_probed() {
    // RFC 8985 section 7: after two round trips, not after the timeout.
    let mut p = Pair::new(&linux("reno"), &linux("reno")).open();
    p.drop_data(&[8, 9]);
    p.apps[A].to_write = 10 * 1448;
    p.run_for(Span::from_secs(2));
    assert_eq!(p.apps[B].read, 10 * 1448);
    // The probe is the last segment; its SACK shows the other.
    let (data, again) = (p.data(), p.again());
    assert_eq!(again.iter().map(|s| s.t.tcp.seq).collect::<Vec<_>>(), [data[9].t.tcp.seq, data[8].t.tcp.seq]);
    // The last ACK came after 20 ms; two more round trips, 2 ms, and ticks.
    let wait = again[0].ms() - data[9].ms();
    assert!((62..75).contains(&wait), "{wait}");
    assert!((20..23).contains(&(again[1].ms() - again[0].ms())));
    assert_eq!(p.a().info().timeouts, 0);
    assert!(p.a().info().ssthresh < 100, "the window fell");
}

#[test]
fn a_lost_retransmission_is_sent_again() {
    for kernel in Kernel::ALL {
        let mut cfg = Config::linux(kernel);
        cfg.set_cc("reno").unwrap();
        let mut p = Pair::new(&cfg, &cfg).open();
        let mut losses = 0;
        p.fate = Box::new(move |from, t, n| {
            let hit = from == A && (n == 12 || t.retransmission && losses == 0);
            losses += u32::from(hit && t.retransmission);
            if hit { Fate::Drop } else { Fate::Pass }
        });
        p.apps[A].to_write = 400 * 1448;
        p.run_for(Span::from_secs(6));
        assert_eq!(p.apps[B].read, 400 * 1448);
        assert_eq!(p.a().info().timeouts, 0, "{kernel}: found without a timeout");
    }
}

#[test]
fn reordering_alone_loses_nothing() {
    let mut p = Pair::new(&linux("reno"), &linux("reno")).open();
    p.fate = Box::new(|from, t, n| {
        if from == A && t.payload_len > 0 && n % 40 == 20 { Fate::Late(Span::from_ms(4)) } else { Fate::Pass }
    });
    p.lines[A].rate_bit_s = 20_000_000;
    p.apps[A].to_write = 2_000 * 1448;
    p.run_for(Span::from_secs(10));
    assert_eq!(p.apps[B].read, 2_000 * 1448);
    let i = p.a().info();
    assert_eq!(i.timeouts, 0);
    // Once it is known, the reordering window (a quarter of the least RTT) and undo hold the harm down.
    assert!(i.total_retrans < 60, "{}", i.total_retrans);
}

#[test]
fn a_spurious_timeout_is_undone() {
    // Everything is late once, as when a radio link stalls (RFC 5682).
    let mut p = Pair::new(&linux("reno"), &linux("reno")).open();
    p.apps[A].to_write = 300 * 1448;
    p.run_for(Span::from_ms(70));
    let before = p.a().cwnd();
    p.fate = Box::new(|from, _, _| if from == A { Fate::Late(Span::from_ms(600)) } else { Fate::Pass });
    p.run_for(Span::from_ms(60));
    p.fate = Box::new(|_, _, _| Fate::Pass);
    p.run_for(Span::from_secs(5));
    assert_eq!(p.apps[B].read, 300 * 1448);
    assert!(p.a().cwnd() >= before, "{} {before}", p.a().cwnd());
}

#[test]
fn ecn_halves_once_a_round_trip() {
    let mut cfg = linux("reno");
    cfg.ecn = penstock_tcp::Ecn::On;
    let mut p = Pair::new(&cfg, &cfg).open();
    for line in &mut p.lines {
        line.rate_bit_s = 20_000_000;
        line.mark_above = 20;
    }
    p.apps[A].to_write = 3_000 * 1448;
    p.run_for(Span::from_secs(10));
    assert_eq!(p.apps[B].read, 3_000 * 1448);
    assert_eq!(p.again().len(), 0, "marks instead of losses");
    let cwr: Vec<Sent> =
        p.log.iter().filter(|s| s.from == A && s.is_data() && s.has(TcpFlags::CWR)).copied().collect();
    assert!(!cwr.is_empty());
    for w in cwr.windows(2) {
        assert!(w[1].ms() - w[0].ms() >= 20, "once a round trip");
    }
    assert!(p.log.iter().any(|s| s.from == B && s.has(TcpFlags::ECE)));
    // Only who asks is answered: the default accepts.
    let mut p = Pair::new(&linux("reno"), &linux("reno")).open();
    p.apps[A].to_write = 1448;
    p.run_for(Span::from_secs(1));
    assert!(p.log.iter().all(|s| !s.t.ect));
}

#[test]
fn a_local_drop_is_no_loss() {
    let mut p = Pair::new(&linux("reno"), &linux("reno")).open();
    p.apps[A].to_write = 20 * 1448;
    p.apps[A].chunk = 20 * 1448;
    let now = p.now;
    assert!(p.a().write(20 * 1448, now) > 0);
    p.apps[A].to_write = 0;
    p.a().poll_transmit(now).unwrap();
    let cwnd = p.a().cwnd();
    p.a().local_drop(now);
    assert_eq!(p.a().poll_transmit(now), None, "nothing more goes now");
    assert_eq!(p.a().info().unacked, 0);
    assert_eq!((p.a().info().ca_state, p.a().info().ssthresh), (CaState::Cwr, cwnd / 2));
    p.run_for(Span::from_secs(3));
    assert_eq!(p.apps[B].read, 20 * 1448);
    assert_eq!(p.again().len(), 0);
}

#[test]
fn small_queues_bound_what_waits_in_the_host() {
    let mut cfg = linux("reno");
    cfg.device_accounting = true;
    cfg.initial_window = 1_000;
    cfg.sndbuf = Buffer::Fixed(4 << 20);
    let mut p = Pair::new(&cfg, &linux("reno")).open();
    let now = p.now;
    assert!(p.a().write(1 << 20, now) > 500_000);
    let mut taken = Vec::new();
    while let Some(t) = p.a().poll_transmit(now) {
        taken.push(t.payload_len);
    }
    // The peer's window would let 45 go. What a millisecond carries at the rate guessed is far less than 1000 segments.
    let first = taken.len();
    assert!((2..=45).contains(&first), "{first}");
    for len in taken {
        p.a().transmitted_freed(len, now);
    }
    let more = std::iter::from_fn(|| p.a().poll_transmit(now)).count();
    assert!(first == 45 || more > 0);
}

#[test]
fn a_socket_closed_before_it_is_open_still_closes() {
    let mut p = Pair::idle(&linux("reno"), &linux("reno"));
    let now = p.now;
    let mut a = penstock_tcp::Endpoint::connect(&linux("reno"), 1, 2, 7, now);
    let syn = a.poll_transmit(now).unwrap();
    let mut b = penstock_tcp::Endpoint::accept(&linux("reno"), &syn.tcp, 9, now).unwrap();
    b.close(now);
    assert_eq!(b.state(), State::SynReceived);
    p.ends = [Some(a), Some(b)];
    p.apps[A].close = true;
    p.run_for(Span::from_secs(2));
    assert!(matches!(p.a().state(), State::TimeWait | State::Closed), "{:?}", p.a().state());
    assert!(matches!(p.b().state(), State::TimeWait | State::Closed), "{:?}", p.b().state());
}

// ---- As Linux 2.6.35 had it ----

fn old(cc: &str) -> Config {
    let mut cfg = Config::linux(Kernel::V2_6_35);
    cfg.set_cc(cc).unwrap();
    cfg
}

/// An open pair of 2.6.35s whose window has grown past slow start's first steps.
fn old_pair() -> Pair {
    Pair::new(&old("reno"), &old("reno")).open()
}

#[test]
fn old_out_of_order_segments_are_answered_and_so_are_the_next() {
    // tcp_data_queue: each segment out of order grants quick ACKs, so that after the gap is filled every segment is
    // acknowledged alone for a while; 6.12 goes back to every second at once.
    let alone = |kernel| {
        let mut cfg = Config::linux(kernel);
        cfg.set_cc("reno").unwrap();
        // A buffer that need not grow: its growth lets ACKs go at once, too.
        cfg.set_rcvbuf(1_000_000);
        let mut p = Pair::new(&cfg, &cfg).line(Line { rate_bit_s: 10_000_000, ..Line::default() }).open();
        p.drop_data(&[100]);
        // One call, so that every segment is full.
        p.apps[A].chunk = u64::MAX;
        p.apps[A].to_write = 400 * 1448;
        p.run_for(Span::from_secs(5));
        let filled = p.again()[0].end();
        let acks: Vec<u32> = p.acks().iter().map(|s| s.t.tcp.ack).filter(|&a| a > filled).collect();
        acks.windows(2).take(12).filter(|w| w[1] - w[0] == 1448).count()
    };
    let (before, today) = (alone(Kernel::V2_6_35), alone(Kernel::V6_12));
    assert!(before >= 5 && today <= 2, "{before} {today}");
}

#[test]
fn old_a_queue_of_one_frame_is_kept_busy() {
    // 1 Mbit/s, one frame waits, round trip 2 ms: 1448 of 1514 bytes are payload, hence 956 kbit/s at best.
    let mut p = Pair::new(&old("cubic"), &old("cubic"));
    p.lines[A] = Line { delay: Span::ZERO, rate_bit_s: 1_000_000, limit: 1, tbf: true, ..Line::default() };
    p.lines[B] = Line { delay: Span::from_ms(2), ..Line::default() };
    p.apps[A].to_write = u64::MAX / 2;
    p.run_for(Span::from_secs(10));
    let kbit_s = p.apps[B].read * 8 / 10_000;
    assert!((900..=960).contains(&kbit_s), "{kbit_s}");
    assert!(p.a().info().timeouts <= 2, "{:?}", p.a().info());
}

#[test]
fn old_a_timeout_sends_two_new_segments_before_it_believes_in_loss() {
    // F-RTO (RFC 4138): all ACKs are late by 600 ms, nothing is lost; only the front segment goes again.
    let mut p = old_pair();
    p.apps[A].to_write = 400 * 1448;
    p.run_for(Span::from_ms(100));
    let until = p.now + Span::from_ms(300);
    let (mut held, seen) = (0, p.log.len());
    p.lines[B].delay = Span::from_ms(600);
    p.run_for(Span::from_ms(1));
    p.run_for(until - p.now);
    p.lines[B].delay = Span::from_ms(600);
    p.run_for(Span::from_ms(700));
    for s in p.log[seen..].iter().filter(|s| s.from == A && s.t.retransmission) {
        held += 1;
        assert_eq!(s.t.payload_len, 1448);
    }
    assert!((1..=2).contains(&held), "{held} retransmissions");
    p.lines[B].delay = Span::from_ms(10);
    p.run_for(Span::from_secs(30));
    assert_eq!(p.apps[B].read, 400 * 1448);
    assert!(p.a().info().timeouts >= 1);
}

#[test]
fn old_a_timeout_after_real_losses_repairs_all_of_them() {
    for sack in [true, false] {
        let mut cfg = old("reno");
        cfg.sack = sack;
        let mut p = Pair::new(&cfg, &cfg).open();
        // A whole flight and what follows it are gone.
        let lost = 1_000_001 + 20 * 1448..1_000_001 + 50 * 1448;
        p.fate = Box::new(move |side, t, _| {
            let gone = side == A && !t.retransmission && lost.contains(&t.tcp.seq);
            if gone { Fate::Drop } else { Fate::Pass }
        });
        p.apps[A].to_write = 100 * 1448;
        p.run_for(Span::from_secs(30));
        assert_eq!(p.apps[B].read, 100 * 1448, "sack {sack}");
        assert!(p.a().info().timeouts >= 1, "sack {sack}");
    }
}

#[test]
fn old_holes_are_sent_again_ahead_of_proof_when_nothing_else_waits() {
    // tcp_xmit_retransmit_queue, rule 3 of RFC 3517's NextSeg: two of the last flight are lost. The second lies less
    // than three below the highest SACK, so it is not held for lost; as there is nothing new, it goes.
    let mut cfg = old("reno");
    cfg.initial_window = 10;
    let mut p = Pair::new(&cfg, &cfg).open();
    p.drop_data(&[16, 25]);
    p.apps[A].to_write = 28 * 1448;
    p.run_for(Span::from_secs(5));
    let again = p.again();
    assert_eq!(again.len(), 2);
    assert!((again[1].at - again[0].at) < Span::from_ms(25), "{} {}", again[0].ms(), again[1].ms());
    assert_eq!(p.a().info().timeouts, 0);
    assert_eq!(p.apps[B].read, 28 * 1448);
}

#[test]
fn old_a_front_segment_older_than_the_timeout_counts_as_lost() {
    // tcp_head_timedout: ACKs that make progress move the timer, and one duplicate is then enough.
    let mut p = old_pair();
    p.apps[A].to_write = 3 * 1448;
    p.run_for(Span::from_secs(1));
    // The first is lost; the second comes 230 ms later, past a timeout of some 220 ms set anew by nothing.
    let from = p.data().len() as u64;
    p.fate = Box::new(move |side, t, n| match (side, t.retransmission) {
        (A, false) if t.payload_len > 0 && n == from => Fate::Drop,
        _ => Fate::Pass,
    });
    p.apps[A].to_write = 1448;
    p.run_for(Span::from_ms(1));
    p.apps[A].to_write = 1448;
    p.run_for(Span::from_secs(2));
    assert_eq!(p.apps[B].read, 5 * 1448);
    assert_eq!(p.again().len(), 1);
}

#[test]
fn segments_too_long_for_the_path_go_again_in_pieces() {
    // RFC 1191: a router drops what is longer than 1,400 bytes and says so. Linux sends all of it again at once, shorter, and with the window it had.
    let mut p = Pair::new(&linux("reno"), &linux("reno")).open();
    p.fate = Box::new(|from, t, _| if from == A && t.payload_len > 1348 { Fate::Drop } else { Fate::Pass });
    p.apps[A].to_write = 20_000;
    p.settle();
    let before = p.data();
    assert_eq!((before.len(), p.a().info().cwnd), (10, 10));
    assert!(before.iter().all(|s| s.t.payload_len == 1448 && s.dropped));
    let now = p.now + Span::from_ms(10);
    p.now = now;
    assert!(p.a().mtu_reduced(now, 1360, true));
    p.settle();
    // Cut in two where it is, not joined with what follows: the window has room for ten.
    let again = p.again();
    assert_eq!(again.iter().map(|s| s.t.payload_len).take(2).collect::<Vec<_>>(), [1348, 100]);
    assert_eq!((again.len(), p.a().info().cwnd), (10, 10));
    assert!(again.iter().all(|s| s.at == now && s.t.payload_len <= 1348));
    // Said once more by the other routers' words about the same flight: nothing happens.
    assert!(!p.a().mtu_reduced(now, 1360, true));
    p.settle();
    assert_eq!(p.again().len(), 10);
    p.run_for(Span::from_secs(2));
    assert_eq!(p.b().info().bytes_received, 20_000);
}

#[test]
fn a_path_that_another_connection_learned_is_kept_to() {
    // tcp_current_mss: what is sent from now on is shorter; what is out stays out.
    let mut p = Pair::new(&linux("reno"), &linux("reno")).open();
    p.apps[A].to_write = 30_000;
    p.settle();
    let now = p.now;
    assert!(!p.a().mtu_reduced(now, 1360, false));
    p.run_for(Span::from_secs(2));
    assert_eq!((p.again().len(), p.b().info().bytes_received), (0, 30_000));
    assert!(p.data().iter().skip(10).all(|s| s.t.payload_len <= 1348));
}
