//! BPDUs: what bridges of a spanning tree tell each other (IEEE 802.1D-1998 clause 9), in a frame of 802.3 with LLC.
//!
//! Follows: linux v6.12 `net/bridge/br_stp_bpdu.c` `br_send_config_bpdu`, `br_send_tcn_bpdu`, `br_stp_rcv`, `br_set_ticks`, `br_get_ticks`.

use super::stp::Id;

/// LLC's header of BPDUs: both service access points 0x42, unnumbered information.
const LLC: [u8; 3] = [0x42, 0x42, 0x03];
/// Times are told in so many parts of a second (`STP_HZ`).
const STP_HZ: i64 = 256;

/// A BPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bpdu {
    Config(Config),
    /// "TCN".
    TopologyChange,
}

/// A configuration BPDU. Times are in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Config {
    pub(crate) topology_change: bool,
    pub(crate) topology_change_ack: bool,
    pub(crate) root: Id,
    pub(crate) root_path_cost: u32,
    pub(crate) bridge: Id,
    pub(crate) port: u16,
    pub(crate) message_age: i64,
    pub(crate) max_age: i64,
    pub(crate) hello_time: i64,
    pub(crate) forward_delay: i64,
}

impl Bpdu {
    /// What stands behind the Ethernet header. `hz`: ticks a second.
    pub(crate) fn bytes(&self, hz: u32) -> Vec<u8> {
        let mut bytes = LLC.to_vec();
        bytes.extend([0, 0, 0]);
        let Bpdu::Config(c) = self else {
            bytes.push(0x80);
            return bytes;
        };
        bytes.extend([0, u8::from(c.topology_change) | if c.topology_change_ack { 0x80 } else { 0 }]);
        let id = |id: Id| id.prio.to_be_bytes().into_iter().chain(id.mac);
        bytes.extend(id(c.root));
        bytes.extend(c.root_path_cost.to_be_bytes());
        bytes.extend(id(c.bridge));
        bytes.extend(c.port.to_be_bytes());
        for ticks in [c.message_age, c.max_age, c.hello_time, c.forward_delay] {
            bytes.extend(((STP_HZ * ticks / i64::from(hz)) as u16).to_be_bytes());
        }
        bytes
    }
    /// Reads what stands behind the Ethernet header; `None`: it is none that the kernel looks at.
    pub(crate) fn read(bytes: &[u8], hz: u32) -> Option<Bpdu> {
        let bytes = bytes.strip_prefix(&LLC)?.strip_prefix(&[0, 0, 0])?;
        let (kind, bytes) = bytes.split_first()?;
        match kind {
            0 if bytes.len() >= 31 => {}
            0x80 => return Some(Bpdu::TopologyChange),
            _ => return None,
        }
        let two = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let id = |at: usize| {
            let mut mac = [0; 6];
            mac.copy_from_slice(&bytes[at + 2..at + 8]);
            Id { prio: two(at), mac }
        };
        let ticks = |at: usize| (i64::from(two(at)) * i64::from(hz) + STP_HZ - 1) / STP_HZ;
        Some(Bpdu::Config(Config {
            topology_change: bytes[0] & 1 != 0,
            topology_change_ack: bytes[0] & 0x80 != 0,
            root: id(1),
            root_path_cost: u32::from(two(9)) << 16 | u32::from(two(11)),
            bridge: id(13),
            port: two(21),
            message_age: ticks(23),
            max_age: ticks(25),
            hello_time: ticks(27),
            forward_delay: ticks(29),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bpdu_is_read_as_it_was_written() {
        let (a, b) =
            (Id { prio: 0x1000, mac: [2, 0, 0, 0, 0, 1] }, Id { prio: 0x8000, mac: [2, 0, 0, 0, 0, 9] });
        let config = Bpdu::Config(Config {
            topology_change: true,
            topology_change_ack: false,
            root: a,
            root_path_cost: 70_000,
            bridge: b,
            port: 0x8002,
            message_age: 1,
            max_age: 5000,
            hello_time: 500,
            forward_delay: 3750,
        });
        let bytes = config.bytes(250);
        assert_eq!(bytes.len(), 38);
        // 20, 2 and 15 s, and a tick of 4 ms that is 1.02 parts and is read as one tick again.
        assert_eq!(bytes[30..], [0, 1, 0x14, 0, 2, 0, 0x0f, 0]);
        assert_eq!(Bpdu::read(&bytes, 250), Some(config));
        assert_eq!(Bpdu::read(&Bpdu::TopologyChange.bytes(250), 250), Some(Bpdu::TopologyChange));
        for len in 0..38 {
            assert_eq!(Bpdu::read(&bytes[..len], 250), None, "{len}");
        }
    }
}
