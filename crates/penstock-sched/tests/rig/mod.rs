//! A device to try qdiscs on: a tree, a clock, dice, a ledger, and `tc` as one types it.
#![allow(dead_code, reason = "each test uses its part")]

use penstock_lang::tc::{self, Command};
use penstock_lang::token;
use penstock_model::{Kernel, PschedClock, Rng, Time};
use penstock_packet::{Ipv4, L3, L4, Packet, Pool, Skb, Udp};
use penstock_sched::{Actions, Cx, Device, Ledger, Tree, Xmit};

/// The device.
pub struct Rig {
    /// Its qdiscs.
    pub tree: Tree,
    /// The moment, ns.
    pub now: i64,
    /// Dropped packets.
    pub drops: Ledger,
    pub acts: Actions,
    /// Spent packets.
    pub pool: Pool,
    rng: Rng,
}

/// eth0: MTU 1500, txqueuelen 1000.
pub fn device(kernel: Kernel) -> Device {
    let clock = PschedClock::default();
    Device {
        ifindex: 2,
        mtu: 1500,
        hard_header_len: 14,
        tx_queue_len: 1000,
        tx_queues: 1,
        speed_mbit: None,
        kernel,
        clock,
        hz: kernel.hz(),
    }
}

impl Rig {
    /// A device just up.
    pub fn new(kernel: Kernel) -> Rig {
        Rig::on(device(kernel))
    }
    /// This device just up.
    pub fn on(device: Device) -> Rig {
        let rng = Rng::named(1, "rig");
        Rig {
            tree: Tree::new(device),
            now: 0,
            drops: Ledger::new(),
            acts: Actions::new(),
            pool: Pool::new(),
            rng,
        }
    }
    /// The same after some commands, each of which must succeed.
    pub fn with(kernel: Kernel, lines: &[&str]) -> Rig {
        Rig::with_on(device(kernel), lines)
    }
    /// The same on this device.
    pub fn with_on(device: Device, lines: &[&str]) -> Rig {
        let mut rig = Rig::on(device);
        for line in lines {
            rig.tc(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        rig
    }
    /// Runs `work` on the tree.
    pub fn call<T>(&mut self, work: impl FnOnce(&mut Tree, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx {
            now: Time::from_ns(self.now),
            rng: &mut self.rng,
            drops: &mut self.drops,
            acts: &mut self.acts,
        };
        work(&mut self.tree, &mut cx)
    }
    /// Executes one command line of tc.
    pub fn tc(&mut self, line: &str) -> Result<(), String> {
        // The tc of 2010 cannot name pfifo_fast, though its kernel knows it.
        let kernel = if line.contains("pfifo_fast") { Kernel::V6_12 } else { self.tree.device().kernel };
        let words = token::words(line).map_err(|d| d.message)?;
        for command in tc::parse(&words, kernel).map_err(|f| f.stderr)? {
            let done = match &command {
                Command::Qdisc { req, .. } => self.call(|tree, cx| tree.qdisc(req, cx)),
                Command::Class { req, .. } => self.call(|tree, cx| tree.class(req, cx)),
                Command::Filter { req, .. } => self.call(|tree, cx| tree.filter(req, cx)),
                _ => Ok(()),
            };
            done.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
    /// Takes a packet in.
    pub fn enqueue(&mut self, packet: Packet) -> Xmit {
        self.call(|tree, cx| tree.enqueue(packet, cx))
    }
    /// Gives one out.
    pub fn dequeue(&mut self) -> Option<Packet> {
        self.call(|tree, cx| tree.dequeue(cx))
    }
    /// Packets queued.
    pub fn qlen(&self) -> u32 {
        self.tree.qlen()
    }
}

/// A UDP packet of `len` bytes from 10.0.0.`host` to 10.0.1.1.
pub fn udp(seq: u64, len: u32, host: u8, priority: u32) -> Skb {
    Skb {
        priority,
        flow: u32::from(host),
        seq,
        ..Skb::new(
            len,
            L3::Ipv4(Ipv4::new([10, 0, 0, host].into(), [10, 0, 1, 1].into(), 17)),
            L4::Udp(Udp { sport: 1000 + u16::from(host), dport: 2000 }),
        )
    }
}
