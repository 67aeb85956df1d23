//! Files of `/sys/class/net/NAME` about which processor does a card's work: `queues/rx-N`, `queues/tx-N`, and those of NAPI.
//!
//! Follows: linux v6.12 `net/core/net-sysfs.c` `xps_queue_store`, `rps_cpus`, `net/core/dev.c` `__netif_set_xps_queue`.
//! Differs: a host here has one processor, the first of a mask; masks may name others, which Linux refuses where they are not there.
//! Byte queue limits are those of a card whose driver counts bytes ([`Dql`]); on another another value than the first is refused, as it would do nothing.

use super::{INVALID, Refusal};
use crate::NetDevice;
use crate::dql::{Dql, MAX_LIMIT};

const UNSIMULATED: Refusal = "not simulated";

/// Files of a queue that receives, and of one that sends.
const RX: [&str; 2] = ["rps_cpus", "rps_flow_cnt"];
const TX: [&str; 4] = ["byte_queue_limits", "traffic_class", "tx_maxrate", "xps_cpus"];
const LIMITS: [&str; 6] = ["hold_time", "inflight", "limit", "limit_max", "limit_min", "stall_thrs"];

/// A queue's number and what comes behind it: `queues/tx-3/xps_cpus`.
fn parts<'a>(d: &NetDevice, below: &'a str) -> Option<(bool, u16, &'a str)> {
    let rest = below.strip_prefix("queues/")?;
    let (queue, file) = rest.split_once('/').unwrap_or((rest, ""));
    let (side, number) = queue.split_once('-')?;
    let sends = side == "tx";
    let count = if sends { d.queues.0 } else { d.queues.1 };
    let number = number.parse::<u16>().ok().filter(|&n| u32::from(n) < count)?;
    (sends || side == "rx").then_some((sends, number, file))
}

/// What a file holds at first; `None` where there is none.
pub(super) fn begins(d: &NetDevice, below: &str) -> Option<&'static str> {
    if matches!(below, "gro_flush_timeout" | "napi_defer_hard_irqs" | "threaded") {
        return Some("0");
    }
    let (sends, _, file) = parts(d, below)?;
    match (sends, file) {
        (false, file) if RX.contains(&file) => Some("0"),
        (true, "xps_cpus" | "tx_maxrate" | "traffic_class") => Some("0"),
        (true, "byte_queue_limits/hold_time") => Some("1000"),
        (true, "byte_queue_limits/limit_max") => Some("1879048192"),
        (true, file) => {
            let name = file.strip_prefix("byte_queue_limits/")?;
            LIMITS.contains(&name).then_some("0")
        }
        _ => None,
    }
}

/// The names in a queue's folder.
pub(super) fn folder(d: &NetDevice, below: &str) -> Option<&'static [&'static str]> {
    match parts(d, below)? {
        (false, _, "") => Some(&RX),
        (true, _, "") => Some(&TX),
        (true, _, "byte_queue_limits") => Some(&LIMITS),
        _ => None,
    }
}

/// What a file of byte queue limits holds now, where the driver counts bytes.
pub(super) fn counted(d: &NetDevice, below: &str) -> Option<String> {
    let (true, _, file) = parts(d, below)? else { return None };
    let mut bql = **d.bql.as_ref()?;
    let inflight = bql.inflight();
    match file {
        "byte_queue_limits/inflight" => Some(inflight.to_string()),
        _ => place(&mut bql, file).map(|value| value.to_string()),
    }
}
/// What such a file stands for.
fn place<'a>(bql: &'a mut Dql, file: &str) -> Option<&'a mut u32> {
    Some(match file.strip_prefix("byte_queue_limits/")? {
        "hold_time" => &mut bql.hold_ms,
        "limit" => &mut bql.limit,
        "limit_max" => &mut bql.max,
        "limit_min" => &mut bql.min,
        _ => return None,
    })
}
/// What may be written into it.
//= linux v6.12 net/core/net-sysfs.c bql_set, bql_set_hold_time
fn limit(text: &str, file: &str) -> Result<u32, Refusal> {
    match file {
        "byte_queue_limits/inflight" => Err("Permission denied"),
        "byte_queue_limits/stall_thrs" if text != "0" => Err(UNSIMULATED),
        "byte_queue_limits/hold_time" | "byte_queue_limits/stall_thrs" => text.parse().map_err(|_| INVALID),
        _ if text == "max" => Ok(MAX_LIMIT),
        _ => text.parse().ok().filter(|&n| n <= MAX_LIMIT).ok_or(INVALID),
    }
}

/// Whether a mask of processors (hexadecimal, words parted by commas) has the first.
fn first_of_mask(text: &str) -> Result<bool, Refusal> {
    let digits = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_hexdigit());
    if !text.split(',').all(digits) {
        return Err(INVALID);
    }
    let last = text.chars().last().and_then(|c| c.to_digit(16)).unwrap_or(0);
    Ok(last & 1 == 1)
}

/// Writes one of them.
pub(super) fn write(d: &mut NetDevice, below: &str, text: &str) -> Result<(), Refusal> {
    let text = text.trim();
    match parts(d, below) {
        Some((false, _, "rps_cpus")) => {
            first_of_mask(text)?;
        }
        Some((true, queue, "xps_cpus")) => {
            // One queue is chosen anyway (`netdev_core_pick_tx`).
            let on = first_of_mask(text)?;
            d.tree.set_xps(queue, on && d.queues.0 > 1);
        }
        Some((true, _, "tx_maxrate")) => return Err("Operation not supported"),
        Some((true, _, "traffic_class")) => return Err("Permission denied"),
        Some((true, _, file)) if d.bql.is_some() => {
            let value = limit(text, file)?;
            if let Some(place) = d.bql.as_mut().and_then(|b| place(b, file)) {
                *place = value;
            }
            return Ok(());
        }
        Some((true, _, _)) => {
            // A limit is what it is at first, or is not followed.
            text.parse::<u64>().map_err(|_| INVALID)?;
            return if begins(d, below) == Some(text) { Ok(()) } else { Err(UNSIMULATED) };
        }
        _ => {
            text.parse::<u64>().map_err(|_| INVALID)?;
        }
    }
    d.kept.insert(below.to_owned(), text.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Host;
    use penstock_model::{Kernel, Time};

    #[test]
    fn what_several_processors_would_share_changes_nothing_here() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        let mut write = |file: &str, text: &str| {
            let path = format!("/sys/class/net/eth0/{file}");
            host.write_file(&path, text, Time::ZERO).map(|()| host.read_file(&path).unwrap())
        };
        assert_eq!(write("queues/rx-0/rps_cpus", "f\n"), Ok("f\n".to_owned()));
        assert_eq!(write("queues/rx-0/rps_flow_cnt", "4096"), Ok("4096\n".to_owned()));
        assert_eq!(write("queues/tx-0/xps_cpus", "00000000,0000000f"), Ok("00000000,0000000f\n".to_owned()));
        assert_eq!(write("threaded", "1"), Ok("1\n".to_owned()));
        assert_eq!(write("queues/rx-0/rps_cpus", "x"), Err("Invalid argument"));
        assert_eq!(write("queues/rx-1/rps_cpus", "1"), Err("No such file or directory"));
        assert_eq!(write("queues/tx-0/tx_maxrate", "100"), Err("Operation not supported"));
        let limit = "queues/tx-0/byte_queue_limits/limit_max";
        assert_eq!(write(limit, "1879048192"), Ok("1879048192\n".to_owned()));
        assert_eq!(write(limit, "3000"), Err("not simulated"));
        assert_eq!(
            host.list_dir("/sys/class/net/eth0/queues/tx-0").unwrap(),
            ["byte_queue_limits", "traffic_class", "tx_maxrate", "xps_cpus"]
        );
    }
}
