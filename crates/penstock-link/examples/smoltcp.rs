//! A transfer by smoltcp over a line of 10 Mbit/s, through a long fifo, fq_codel, cake and dualpi2; a datagram every 20 ms asks for the delay.

use penstock_link::{Kernel, Link, Meta, Settings, Span, Time, rate, set_tos};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;

/// What goes over the line: a datagram of smoltcp's, or a probe that knows when it was sent.
#[derive(Clone)]
enum Sent {
    Ip(Vec<u8>),
    Probe(Time),
}

/// What smoltcp takes for a network card: datagrams in, datagrams out.
#[derive(Default)]
struct Card {
    came: VecDeque<Vec<u8>>,
    goes: VecDeque<Vec<u8>>,
}

struct Rx(Vec<u8>);
struct Tx<'c>(&'c mut VecDeque<Vec<u8>>);

impl RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut datagram = vec![0; len];
        let done = f(&mut datagram);
        self.0.push_back(datagram);
        done
    }
}

impl Device for Card {
    type RxToken<'a> = Rx;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Rx, Tx<'_>)> {
        self.came.pop_front().map(|datagram| (Rx(datagram), Tx(&mut self.goes)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        Some(Tx(&mut self.goes))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut all = DeviceCapabilities::default();
        (all.medium, all.max_transmission_unit) = (Medium::Ip, 1500);
        all
    }
}

/// A machine with one socket.
struct Machine {
    card: Card,
    stack: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl Machine {
    fn new(last: u8) -> Machine {
        let mut card = Card::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = u64::from(last);
        let mut stack = Interface::new(config, &mut card, Instant::ZERO);
        stack.update_ip_addrs(|all| {
            all.push(IpCidr::new(IpAddress::v4(10, 0, 0, last), 24)).expect("there is room for one");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let mut socket =
            Socket::new(SocketBuffer::new(vec![0; 500_000]), SocketBuffer::new(vec![0; 500_000]));
        socket.set_congestion_control(CongestionControl::Cubic);
        let socket = sockets.add(socket);
        Machine { card, stack, sockets, socket }
    }
    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }
    fn poll(&mut self, now: Instant) {
        self.stack.poll(now, &mut self.card, &mut self.sockets);
    }
}

/// Bytes received a second as bit/s, and the median and greatest delay of the probes in ms.
fn run(qdisc: &str) -> Result<(f64, f64, f64), Box<dyn std::error::Error>> {
    const SECONDS: i64 = 10;
    let delay = Span::from_ms(10);
    // dualpi2 is in the newest kernel alone.
    let kernel = Kernel::V7_2;
    let settings = Settings { rate: Some(rate("10mbit")?), delay, kernel, ..Settings::default() };
    let mut line: Link<Sent> = Link::new(&settings);
    line.tc(Time::ZERO, &format!("qdisc add dev eth0 root {qdisc}"))?;
    let mut back: Link<Sent> =
        Link::new(&Settings { rate: Some(rate("100mbit")?), delay, ..Settings::default() });

    let (mut client, mut server) = (Machine::new(1), Machine::new(2));
    server.socket().listen(5001)?;
    let cx = client.stack.context();
    client.sockets.get_mut::<Socket<'_>>(client.socket).connect(
        cx,
        (IpAddress::v4(10, 0, 0, 2), 5001),
        40_000,
    )?;

    let (mut us, mut next_probe, mut received, mut delays) = (0i64, 0i64, 0usize, Vec::new());
    while us < SECONDS * 1_000_000 {
        let (now, instant) = (Time::from_ns(us * 1000), Instant::from_micros(us));
        if us >= next_probe {
            let probe = Meta::udp("10.0.0.1:7".parse()?, "10.0.0.2:7".parse()?, 100, 0);
            line.enqueue(now, probe, Sent::Probe(now));
            next_probe += 20_000;
        }
        while let Some(arrival) = line.dequeue(now) {
            match arrival.data {
                Sent::Ip(mut datagram) => {
                    set_tos(&mut datagram, arrival.tos);
                    server.card.came.push_back(datagram);
                }
                Sent::Probe(sent) => delays.push((arrival.at.as_ns() - sent.as_ns()) as f64 / 1e6),
            }
        }
        while let Some(arrival) = back.dequeue(now) {
            if let Sent::Ip(datagram) = arrival.data {
                client.card.came.push_back(datagram);
            }
        }
        let socket = client.socket();
        while socket.can_send() && socket.send_slice(&[7; 8192])? > 0 {}
        client.poll(instant);
        server.poll(instant);
        let socket = server.socket();
        while socket.can_recv() {
            received += socket.recv(|bytes| (bytes.len(), bytes.len()))?;
        }
        // What was read opens the window.
        server.poll(instant);
        for datagram in client.card.goes.drain(..) {
            line.enqueue(now, Meta::of_ip(&datagram), Sent::Ip(datagram));
        }
        for datagram in server.card.goes.drain(..) {
            back.enqueue(now, Meta::of_ip(&datagram), Sent::Ip(datagram));
        }
        // The next moment at which anything happens, in whole microseconds, which smoltcp counts.
        let wakes =
            [line.next_wake(), back.next_wake()].into_iter().flatten().map(|t| (t.as_ns() + 999) / 1000);
        let polls = [&mut client, &mut server]
            .map(|m| m.stack.poll_at(instant, &m.sockets).map(|t| t.total_micros()));
        let next = wakes.chain(polls.into_iter().flatten()).min().unwrap_or(i64::MAX);
        us = next.min(next_probe).max(us + 1);
    }
    delays.sort_by(f64::total_cmp);
    let median = delays[delays.len() / 2];
    Ok((received as f64 * 8.0 / SECONDS as f64, median, delays[delays.len() - 1]))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:24} {:>12} {:>14} {:>12}", "qdisc", "goodput", "delay, median", "greatest");
    let mut median = Vec::new();
    for qdisc in ["pfifo limit 1000", "fq_codel", "cake bandwidth 9500kbit", "dualpi2"] {
        let (goodput, middle, most) = run(qdisc)?;
        println!("{qdisc:24} {:>7.2} Mbit/s {middle:>11.1} ms {most:>9.1} ms", goodput / 1e6);
        assert!(goodput > 8e6, "{qdisc} carries the transfer");
        median.push(middle);
    }
    // The probe waits behind the transfer in the fifo and, which is kept short, in dualpi2's queue; it has a queue of its own in the others.
    assert!(median[0] > 100.0 && median[1] < 15.0 && median[2] < 15.0 && median[3] < 40.0);
    Ok(())
}
