//! Opening, carrying, acknowledging and closing.

use crate::pair;
use pair::*;
use penstock_model::{Kernel, Span};
use penstock_packet::TcpFlags;
use penstock_tcp::{Buffer, Config, Endpoint, Error, State, reset_for};

fn linux() -> Config {
    Config::linux(Kernel::V6_12)
}

#[test]
fn every_stack_talks_to_every_other() {
    let stacks = [Config::linux(Kernel::V6_12), Config::linux(Kernel::V2_6_35), Config::windows_xp()];
    for a in &stacks {
        for b in &stacks {
            let mut p = Pair::new(a, b);
            let took = p.transfer(1_000_000);
            assert_eq!(p.apps[B].read, 1_000_000);
            assert_eq!((p.a().state(), p.b().state()), (State::TimeWait, State::Closed));
            assert!(took < Span::from_secs(20), "{:?} {:?} {took}", a.stack, b.stack);
            assert_eq!(p.again().len(), 0, "{:?} {:?}", a.stack, b.stack);
        }
    }
}

#[test]
fn handshakes_look_as_on_the_wire() {
    let check =
        |cfg: &Config, syn_header: u32, syn_win: u16, ack_win: u16, scale: Option<u8>, ack_header: u32| {
            let p = Pair::new(cfg, cfg).open();
            let (syn, synack) = (p.log[0].t.tcp, p.log[1].t.tcp);
            assert_eq!(
                (syn.header_len(), syn.window, syn.wscale, syn.mss),
                (syn_header, syn_win, scale, Some(1460))
            );
            assert_eq!(synack.window, ack_win);
            assert_eq!(p.log[2].t.tcp.header_len(), ack_header);
        };
    // Ethernet 14 and IP 20 make frames of 74 and 66 bytes.
    check(&linux(), 40, 64_240, 65_160, Some(7), 32);
    check(&Config::linux(Kernel::V2_6_35), 40, 5_840, 5_792, Some(7), 32);
    // 62 and 54.
    check(&Config::windows_xp(), 28, 17_520, 17_520, None, 20);
}

#[test]
fn the_first_flight_is_the_initial_window() {
    let flight = |cfg: &Config| {
        let mut p = Pair::new(cfg, &linux()).open();
        p.apps[A].to_write = 1 << 20;
        p.settle();
        p.data().len()
    };
    assert_eq!(flight(&linux()), 10);
    assert_eq!(flight(&Config::linux(Kernel::V2_6_35)), 3);
    assert_eq!(flight(&Config::windows_xp()), 2);
}

#[test]
fn slow_start_doubles_a_round_trip() {
    // While the receiver acknowledges each segment.
    let mut p = Pair::new(&linux(), &linux()).open();
    p.apps[A].to_write = 1 << 24;
    p.run_for(Span::from_ms(15));
    let mut rounds = Vec::new();
    let mut seen = p.data().len();
    rounds.push(seen);
    for _ in 0..2 {
        p.run_for(Span::from_ms(20));
        rounds.push(p.data().len() - seen);
        seen = p.data().len();
    }
    // The last segment of a round may wait for its acknowledgement.
    assert_eq!(rounds[..2], [10, 20]);
    assert!((38..=40).contains(&rounds[2]), "{rounds:?}");
}

#[test]
fn acknowledgements_are_quick_at_first_then_every_second() {
    let mut p = Pair::new(&linux(), &linux()).open();
    p.lines[A].rate_bit_s = 10_000_000;
    p.apps[A].to_write = 100 * 1448;
    p.run_for(Span::from_secs(2));
    let acks = p.acks();
    let steps: Vec<u32> =
        acks.windows(2).map(|w| w[1].t.tcp.ack.wrapping_sub(w[0].t.tcp.ack) / 1448).collect();
    assert!(steps[..15].iter().all(|&s| s == 1), "{steps:?}");
    // Each growth of the window offered makes one more go at once (tcp_grow_window), so not all are twos.
    assert!(steps[15..].contains(&2) && steps.iter().all(|&s| s <= 2), "{steps:?}");
}

#[test]
fn xp_acknowledges_every_second_segment_and_after_200_ms() {
    let mut p = Pair::new(&Config::windows_xp(), &Config::windows_xp()).open();
    p.apps[A].to_write = 2 * 1460;
    p.run_for(Span::from_ms(100));
    let n = p.acks().len();
    assert_eq!(p.acks()[n - 1].t.tcp.header_len(), 20);
    assert_eq!(p.apps[B].read, 2 * 1460);
    assert_eq!(n, 1);
    p.apps[A].to_write = 1000;
    p.run_for(Span::from_ms(150));
    assert_eq!(p.acks().len(), n, "delayed");
    p.run_for(Span::from_ms(100));
    assert_eq!(p.acks().len(), n + 1);
}

#[test]
fn a_delayed_ack_comes_after_forty_milliseconds() {
    let mut p = Pair::new(&linux(), &linux()).open();
    // Use up the quick ones.
    p.apps[A].to_write = 60 * 1448;
    p.run_for(Span::from_secs(1));
    let n = p.acks().len();
    let ping = p.data().len();
    p.apps[A].to_write = 1448;
    p.run_for(Span::from_secs(1));
    let (data, ack) = (p.data()[ping], p.acks()[n]);
    let wait = ack.ms() - data.ms() - 10;
    assert!(wait <= 48, "{wait}");
    assert_eq!(p.acks().len(), n + 1);
}

#[test]
fn nagle_holds_back_the_second_small_segment() {
    for nodelay in [false, true] {
        let mut cfg = linux();
        cfg.nodelay = nodelay;
        let mut p = Pair::new(&cfg, &linux()).open();
        for _ in 0..3 {
            p.apps[A].to_write = 100;
            p.settle();
        }
        let sizes: Vec<u32> = p.data().iter().map(|s| s.t.payload_len).collect();
        if nodelay {
            assert_eq!(sizes, [100, 100, 100]);
        } else {
            assert_eq!(sizes, [100]);
            p.run_for(Span::from_ms(200));
            let sizes: Vec<u32> = p.data().iter().map(|s| s.t.payload_len).collect();
            assert_eq!(sizes, [100, 200]);
            assert!(p.data()[1].has(TcpFlags::PSH));
        }
    }
}

#[test]
fn a_closed_window_is_probed_with_backoff() {
    let mut p = Pair::new(&linux(), &linux()).open();
    p.apps[B].reads = false;
    p.apps[A].to_write = 4 << 20;
    p.run_for(Span::from_secs(30));
    assert!(p.a().info().snd_wnd < 1448, "{}", p.a().info().snd_wnd);
    let probes: Vec<Sent> =
        p.log.iter().filter(|s| s.from == A && s.is_pure_ack() && s.ms() > 11_000).copied().collect();
    assert!(probes.len() >= 5);
    let gaps: Vec<i64> = probes.windows(2).map(|w| w[1].ms() - w[0].ms()).collect();
    for w in gaps.windows(2) {
        assert!(w[1] * 10 >= w[0] * 17, "{gaps:?}");
    }
    assert_eq!(p.a().state(), State::Established);
    // Reading opens it again at once.
    p.apps[B].reads = true;
    p.run_for(Span::from_secs(5));
    assert_eq!(p.apps[B].read, 4 << 20);
}

#[test]
fn a_fixed_receive_buffer_bounds_what_is_out() {
    let mut xp = Config::windows_xp();
    xp.rcvbuf = Buffer::Fixed(8_192);
    let mut p = Pair::new(&linux(), &xp).open();
    p.apps[A].to_write = 100_000;
    for _ in 0..20 {
        p.run_for(Span::from_ms(10));
        assert!(p.a().info().unacked <= 6);
    }
    p.run_for(Span::from_secs(10));
    assert_eq!(p.apps[B].read, 100_000);
}

#[test]
fn the_send_buffer_takes_what_fits() {
    let mut p = Pair::new(&Config::windows_xp(), &linux()).open();
    let now = p.now;
    assert_eq!(p.a().write(1 << 20, now), 8_192);
    assert!(!p.a().writable());
    let mut cfg = linux();
    cfg.set_sndbuf(8_192);
    assert_eq!(cfg.sndbuf, Buffer::Fixed(16_384));
    let mut p = Pair::new(&cfg, &linux()).open();
    let now = p.now;
    // Segments of 1448 bytes hold 2408 each.
    assert_eq!(p.a().write(1 << 20, now), 7 * 1448);
    let mut p = Pair::new(&linux(), &linux()).open();
    assert_eq!(p.a().info().sndbuf, 87_040);
}

#[test]
fn the_receive_buffer_follows_the_rate() {
    let mut p = Pair::new(&linux(), &linux()).open();
    for line in &mut p.lines {
        line.delay = Span::from_ms(50);
    }
    p.lines[A].rate_bit_s = 100_000_000;
    p.apps[A].to_write = u64::MAX / 2;
    p.run_for(Span::from_secs(5));
    // 100 Mbit/s times 100 ms are 1.25 MB.
    assert!(p.b().info().rcvbuf > 2_500_000, "{}", p.b().info().rcvbuf);
    assert!(p.apps[B].read > 40_000_000, "{}", p.apps[B].read);
}

#[test]
fn closing_passes_through_the_states() {
    let mut p = Pair::new(&linux(), &linux()).open();
    p.apps[B].close_at_eof = false;
    p.apps[A].close = true;
    p.settle();
    assert_eq!(p.a().state(), State::FinWait1);
    p.run_for(Span::from_ms(100));
    assert_eq!((p.a().state(), p.b().state()), (State::FinWait2, State::CloseWait));
    // The other way still carries.
    p.apps[B].to_write = 5_000;
    p.run_for(Span::from_ms(100));
    assert_eq!(p.apps[A].read, 5_000);
    p.apps[B].close = true;
    p.settle();
    assert_eq!(p.b().state(), State::LastAck);
    p.run_for(Span::from_ms(100));
    assert_eq!((p.a().state(), p.b().state()), (State::TimeWait, State::Closed));
    p.run_for(Span::from_secs(61));
    assert_eq!(p.a().state(), State::Closed);
    assert_eq!(p.a().error(), None);
}

#[test]
fn both_may_close_at_once() {
    let mut p = Pair::new(&linux(), &linux()).open();
    p.apps[A].close = true;
    p.apps[B].close = true;
    p.settle();
    assert_eq!((p.a().state(), p.b().state()), (State::FinWait1, State::FinWait1));
    p.run_for(Span::from_ms(10));
    assert_eq!((p.a().state(), p.b().state()), (State::Closing, State::Closing));
    p.run_for(Span::from_ms(100));
    assert_eq!((p.a().state(), p.b().state()), (State::TimeWait, State::TimeWait));
}

#[test]
fn both_may_open_at_once() {
    let cfg = linux();
    let mut p = Pair::idle(&cfg, &cfg);
    let now = p.now;
    p.ends = [Some(Endpoint::connect(&cfg, 1, 2, 7, now)), Some(Endpoint::connect(&cfg, 2, 1, 8, now))];
    p.run_for(Span::from_ms(100));
    assert_eq!((p.a().state(), p.b().state()), (State::Established, State::Established));
    p.transfer(10_000);
    assert_eq!(p.apps[B].read, 10_000);
}

#[test]
fn resets_end_connections() {
    let mut p = Pair::new(&linux(), &linux()).open();
    let now = p.now;
    p.a().abort(now);
    p.run_for(Span::from_ms(50));
    assert_eq!((p.b().state(), p.b().error()), (State::Closed, Some(Error::Reset)));
    // Nobody listens.
    let now = p.now;
    let mut e = Endpoint::connect(&linux(), 1, 2, 7, now);
    let syn = e.poll_transmit(now).unwrap();
    let rst = reset_for(&syn.tcp, 0).unwrap();
    assert_eq!(rst.tcp.ack, syn.tcp.seq + 1);
    e.handle_segment(&rst.tcp, 0, penstock_tcp::EcnField::NotEct, now);
    assert_eq!((e.state(), e.error()), (State::Closed, Some(Error::Refused)));
    assert_eq!((e.poll_transmit(now), e.poll_timeout()), (None, None));
    assert!(reset_for(&rst.tcp, 0).is_none());
}

#[test]
fn idleness_shrinks_the_window() {
    let mut p = Pair::new(&linux(), &linux()).open();
    p.apps[A].to_write = 500 * 1448;
    p.run_for(Span::from_secs(1));
    let before = p.a().cwnd();
    assert!(before > 40, "{before}");
    p.run_for(Span::from_secs(20));
    let now = p.now;
    p.a().write(1448, now);
    assert_eq!(p.a().cwnd(), 10, "back to the initial window");
}

#[test]
fn numbers_pass_the_end_of_32_bits() {
    let cfg = linux();
    let mut p = Pair::idle(&cfg, &cfg);
    let now = p.now;
    p.ends[A] = Some(Endpoint::connect(&cfg, 1, 2, u32::MAX - 10_000, now));
    p.drop_data(&[3, 8, 9, 30]);
    p.transfer(3_000_000);
    assert_eq!(p.apps[B].read, 3_000_000);
}
