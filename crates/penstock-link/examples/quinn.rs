//! A transfer by QUIC (quinn-proto) over a line of 10 Mbit/s, through a long fifo, fq_codel, cake and dualpi2; a datagram every 20 ms asks for the delay.
//!
//! quinn-proto knows no socket and no clock either: this file is all that stands between it and the link. Its packets are not encrypted ([`plain`]), but as
//! long as if they were, so no library of cryptography is built. Two runs give the same figures.

#[path = "quinn/plain.rs"]
mod plain;

use penstock_link::{Kernel, Link, Meta, Settings, Span, Time, rate};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    Event, MtuDiscoveryConfig, ReadError, ServerConfig, StreamId, Transmit, TransportConfig, VarInt,
    WriteError,
};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What goes over the line: a datagram of QUIC, or a probe that knows when it was sent.
#[derive(Clone)]
enum Sent {
    Quic(Vec<u8>),
    Probe(Time),
}

/// A machine with one connection.
struct Machine {
    own: SocketAddr,
    other: SocketAddr,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Datagrams that go out, with their bits of ECN.
    goes: Vec<(u8, Vec<u8>)>,
    scratch: Vec<u8>,
}

/// What the client sends or the server has got.
#[derive(Default)]
struct Transfer {
    stream: Option<StreamId>,
    received: usize,
}

fn transport() -> Arc<TransportConfig> {
    let mut all = TransportConfig::default();
    let window = VarInt::from_u32(500_000);
    all.stream_receive_window(window).receive_window(window);
    // The line carries datagrams of 1500 bytes, with headers of IPv4 and UDP.
    all.initial_mtu(1472).mtu_discovery_config(None::<MtuDiscoveryConfig>);
    Arc::new(all)
}

impl Machine {
    fn new(own: &str, other: &str, server: Option<ServerConfig>) -> Result<Machine, Box<dyn Error>> {
        let config = EndpointConfig::new(Arc::new(plain::Plain));
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), false, Some([1; 32]));
        let (own, other) = (own.parse()?, other.parse()?);
        Ok(Machine { own, other, endpoint, connection: None, goes: Vec::new(), scratch: Vec::new() })
    }

    fn connect(&mut self, now: Instant) -> Result<(), Box<dyn Error>> {
        let mut config = ClientConfig::new(Arc::new(plain::Plain));
        config.transport_config(transport());
        self.connection = Some(self.endpoint.connect(now, config, self.other, "server")?);
        Ok(())
    }

    /// A datagram has come.
    fn handle(&mut self, now: Instant, tos: u8, datagram: &[u8]) -> Result<(), Box<dyn Error>> {
        let (ecn, data) = (EcnCodepoint::from_bits(tos), datagram.into());
        self.scratch.clear();
        match self.endpoint.handle(now, self.other, None, ecn, data, &mut self.scratch) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut self.scratch, None);
                self.connection = Some(accepted.map_err(|refused| refused.cause)?);
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(_)) => return Err("no connection takes the datagram".into()),
            None => {}
        }
        Ok(())
    }

    /// Timers that are over, what the connection and its endpoint tell each other, datagrams that may go.
    fn drive(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        loop {
            self.scratch.clear();
            let Some(Transmit { ecn, size, .. }) = connection.poll_transmit(now, 1, &mut self.scratch) else {
                break;
            };
            self.goes.push((ecn.map_or(0, |e| e as u8), self.scratch[..size].to_vec()));
        }
    }

    fn next_wake(&mut self) -> Option<Instant> {
        self.connection.as_mut()?.1.poll_timeout()
    }
}

impl Transfer {
    /// Writes as much as there is room for.
    fn write(&mut self, connection: &mut Connection) -> Result<(), Box<dyn Error>> {
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.stream = connection.streams().open(Dir::Uni),
                Event::ConnectionLost { reason } => return Err(reason.into()),
                _ => {}
            }
        }
        let Some(stream) = self.stream else { return Ok(()) };
        loop {
            match connection.send_stream(stream).write(&[7; 8192]) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return Ok(()),
                Err(other) => return Err(other.into()),
            }
        }
    }

    /// Reads all that is there.
    fn read(&mut self, connection: &mut Connection) -> Result<(), Box<dyn Error>> {
        while let Some(event) = connection.poll() {
            if let Event::ConnectionLost { reason } = event {
                return Err(reason.into());
            }
        }
        self.stream = self.stream.or_else(|| connection.streams().accept(Dir::Uni));
        let Some(stream) = self.stream else { return Ok(()) };
        let mut received = connection.recv_stream(stream);
        let mut chunks = received.read(true)?;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.received += chunk.bytes.len(),
                Ok(None) | Err(ReadError::Blocked) => break,
                Err(other) => return Err(other.into()),
            }
        }
        // What was read opens the window; `drive` sends that.
        let _ = chunks.finalize();
        Ok(())
    }
}

/// What a queue made of the transfer.
#[derive(PartialEq, Debug)]
struct Figures {
    goodput_bit_s: f64,
    median_ms: f64,
    greatest_ms: f64,
    /// Packets of the transfer that arrived with ECN's mark, and those that the queue dropped.
    marked: u32,
    dropped: u64,
}

fn run(qdisc: &str) -> Result<Figures, Box<dyn Error>> {
    const SECONDS: i64 = 10;
    let delay = Span::from_ms(10);
    // dualpi2 is in the newest kernel alone.
    let kernel = Kernel::V7_2;
    let settings = Settings { rate: Some(rate("10mbit")?), delay, kernel, ..Settings::default() };
    let mut line: Link<Sent> = Link::new(&settings);
    line.tc(Time::ZERO, &format!("qdisc add dev eth0 root {qdisc}"))?;
    let mut back: Link<Sent> = Link::new(&Settings { rate: Some(rate("100mbit")?), ..settings });

    // quinn-proto's moments are the computer's, which have no zero: one is asked for, all others follow from it.
    #[allow(clippy::disallowed_methods)]
    let zero = Instant::now();
    let moment = |now: Time| zero + Duration::from_nanos(now.as_ns() as u64);
    let time = |at: Instant| Time::from_ns(at.duration_since(zero).as_nanos() as i64);

    let mut config = ServerConfig::new(Arc::new(plain::Plain), Arc::new(plain::Plain));
    config.transport_config(transport());
    let mut client = Machine::new("10.0.0.1:40000", "10.0.0.2:443", None)?;
    let mut server = Machine::new("10.0.0.2:443", "10.0.0.1:40000", Some(config))?;
    client.connect(zero)?;

    let (mut sends, mut gets) = (Transfer::default(), Transfer::default());
    let (mut now, mut next_probe, mut delays, mut marked) = (Time::ZERO, Time::ZERO, Vec::new(), 0);
    while now < Time::from_ns(SECONDS * 1_000_000_000) {
        let at = moment(now);
        if now >= next_probe {
            let probe = Meta::udp("10.0.0.1:7".parse()?, "10.0.0.2:7".parse()?, 100, 0);
            line.enqueue(now, probe, Sent::Probe(now));
            next_probe = now + Span::from_ms(20);
        }
        while let Some(arrival) = line.dequeue(now) {
            match arrival.data {
                Sent::Quic(datagram) => {
                    marked += u32::from(arrival.tos & 3 == 3);
                    server.handle(at, arrival.tos, &datagram)?;
                }
                Sent::Probe(sent) => delays.push((arrival.at.as_ns() - sent.as_ns()) as f64 / 1e6),
            }
        }
        while let Some(arrival) = back.dequeue(now) {
            if let Sent::Quic(datagram) = arrival.data {
                client.handle(at, arrival.tos, &datagram)?;
            }
        }
        if let Some((_, connection)) = &mut client.connection {
            sends.write(connection)?;
        }
        if let Some((_, connection)) = &mut server.connection {
            gets.read(connection)?;
        }
        for (machine, link) in [(&mut client, &mut line), (&mut server, &mut back)] {
            machine.drive(at);
            for (tos, datagram) in machine.goes.drain(..) {
                let meta = Meta::udp(machine.own, machine.other, datagram.len() as u32, tos);
                link.enqueue(now, meta, Sent::Quic(datagram));
            }
        }
        // The next moment at which anything happens.
        let links = [line.next_wake(), back.next_wake(), Some(next_probe)];
        let machines = [client.next_wake(), server.next_wake()].map(|at| at.map(time));
        let next = links.into_iter().chain(machines).flatten().min().unwrap_or(next_probe);
        now = next.max(now + Span::from_ns(1));
    }
    delays.sort_by(f64::total_cmp);
    Ok(Figures {
        goodput_bit_s: gets.received as f64 * 8.0 / SECONDS as f64,
        median_ms: delays[delays.len() / 2],
        greatest_ms: delays[delays.len() - 1],
        marked,
        dropped: line.lost_packets(),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:24} {:>12} {:>14} {:>12} {:>7} {:>8}",
        "qdisc", "goodput", "delay, median", "greatest", "marked", "dropped"
    );
    for (qdisc, most_ms) in [
        ("pfifo limit 1000", 400.0),
        ("fq_codel", 15.0),
        ("cake bandwidth 9500kbit", 15.0),
        ("dualpi2", 60.0),
    ] {
        let f = run(qdisc)?;
        println!(
            "{qdisc:24} {:>7.2} Mbit/s {:>11.1} ms {:>9.1} ms {:>7} {:>8}",
            f.goodput_bit_s / 1e6,
            f.median_ms,
            f.greatest_ms,
            f.marked,
            f.dropped
        );
        assert_eq!(f, run(qdisc)?, "{qdisc}: the same again");
        assert!(f.goodput_bit_s > 8e6, "{qdisc} carries the transfer");
        assert!(f.median_ms < most_ms, "{qdisc} keeps the delay");
        // The fifo does not know ECN; the others mark QUIC's packets in place of dropping them.
        assert_eq!(f.marked > 0, qdisc != "pfifo limit 1000", "{qdisc} marks");
    }
    Ok(())
}
