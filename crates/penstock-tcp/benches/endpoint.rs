//! What a segment costs: `handle_segment` and `poll_transmit` of both ends over a line without delay.

use penstock_model::{Kernel, Span, Time};
use penstock_tcp::{Config, EcnField, Endpoint};

fn main() {
    divan::main();
}

/// Two connected endpoints.
fn open(cfg: &Config) -> (Endpoint, Endpoint, Time) {
    let now = Time::ZERO + Span::from_secs(1);
    let mut a = Endpoint::connect(cfg, 1, 2, 7, now);
    let syn = a.poll_transmit(now).expect("SYN");
    let mut b = Endpoint::accept(cfg, &syn.tcp, 9, now).expect("a SYN");
    let synack = b.poll_transmit(now).expect("SYN-ACK");
    a.handle_segment(&synack.tcp, 0, EcnField::NotEct, now);
    let ack = a.poll_transmit(now).expect("ACK");
    b.handle_segment(&ack.tcp, 0, EcnField::NotEct, now);
    assert!(b.poll_transmit(now).is_none());
    (a, b, now)
}

/// One segment with payload a call: written, sent, received, read, acknowledged.
#[divan::bench(args = ["cubic", "reno"])]
fn bulk_segment(bencher: divan::Bencher<'_, '_>, cc: &str) {
    let mut cfg = Config::linux(Kernel::V6_12);
    cfg.set_cc(cc).expect("known");
    let (mut a, mut b, mut now) = open(&cfg);
    bencher.counter(divan::counter::ItemsCount::new(1000u32)).bench_local(|| {
        let mut sent = 0;
        while sent < 1000 {
            now += Span::from_us(100);
            a.write(65_536, now);
            while let Some(t) = a.poll_transmit(now) {
                sent += 1;
                b.handle_segment(&t.tcp, t.payload_len, EcnField::NotEct, now);
                b.read(u64::MAX, now);
                while let Some(t) = b.poll_transmit(now) {
                    a.handle_segment(&t.tcp, 0, EcnField::NotEct, now);
                }
            }
            divan::black_box((a.poll_timeout(), b.poll_timeout()));
        }
    });
}
