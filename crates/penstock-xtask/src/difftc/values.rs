//! Values for grammars: mostly what a user would type, now and then what nobody should.

use anyhow::{Result, bail};
use penstock_model::Rng;

/// One of `list`.
fn pick<'a>(rng: &mut Rng, list: &[&'a str]) -> &'a str {
    list[rng.below(list.len() as u32) as usize]
}

/// A value of the kind called `name`.
///
/// # Errors
/// No such kind.
pub fn value(name: &str, args: &[String], rng: &mut Rng) -> Result<String> {
    let bad = rng.below(16) == 0;
    let int = |i: usize, default: i64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    Ok(match name {
        // %num(from,to): a number of the range, its ends more often.
        "num" | "hex" => {
            let (from, to): (i64, i64) = (int(0, 0), int(1, 100_000));
            let n = match rng.below(8) {
                0 => from,
                1 => to,
                _ if bad => {
                    let beyond = [(to + 1).to_string(), (from - 1).to_string()];
                    let odd = ["4294967296", "-1", "abc", "1.5", "1x", "99999999999999999999", "0"];
                    return Ok(match rng.below(3) {
                        0 => beyond[0].clone(),
                        1 => beyond[1].clone(),
                        _ => pick(rng, &odd).to_owned(),
                    });
                }
                _ => from + (rng.next_u64() % (to - from + 1).unsigned_abs()) as i64,
            };
            match (name, rng.below(10)) {
                ("hex", _) => format!("{n:x}"),
                (_, 0) if n >= 0 => format!("0x{n:x}"),
                _ => n.to_string(),
            }
        }
        "time" if bad => pick(rng, &["-1ms", "5x", "abc", "4300s", "0", "1e3ms", "ms", "1e12s"]).to_owned(),
        "time" => pick(
            rng,
            &[
                "5ms", "100ms", "1s", "250msec", "1.5ms", "20us", "100usec", "15", "500", "2secs", "10ms",
                "1ms", "0.5s", "33ms",
            ],
        )
        .to_owned(),
        "rate" if bad => pick(rng, &["0", "-1mbit", "10x", "mbit", "1e15bit", "101%", "abc"]).to_owned(),
        "rate" => pick(
            rng,
            &[
                "1mbit",
                "10mbit",
                "100mbit",
                "1gbit",
                "10gbit",
                "40gbit",
                "500kbit",
                "128kbit",
                "8bit",
                "64000",
                "1.5mbit",
                "1mbps",
                "10kbps",
                "12bps",
                "1mibit",
                "2kibps",
                "1Mbit",
                "9600bit",
                "7mbit",
                "100000kbit",
            ],
        )
        .to_owned(),
        "size" if bad => pick(rng, &["0", "-1", "10x", "5gb", "abc", "99999999999"]).to_owned(),
        "size" => pick(
            rng,
            &[
                "1500", "1514", "10k", "15kb", "1mb", "10kbit", "3000b", "1m", "64k", "100", "1600", "2mbit",
                "30k", "5k", "32kb",
            ],
        )
        .to_owned(),
        "handle" if bad => pick(rng, &["ffff:", "0:", "1:1", "12345:", "x:", "10", ":", "fffff:"]).to_owned(),
        "handle" => {
            pick(rng, &["1:", "2:", "10:", "a:", "001:", "8001:", "fff:", "1", "30:", "5:0"]).to_owned()
        }
        "classid" if bad => pick(rng, &["1:", "0:1", "1:10000", "x:1", "root", "ffff:ffff", "1"]).to_owned(),
        "classid" => {
            pick(rng, &["1:1", "1:2", "1:10", "1:a", "10:1", "1:ffff", "2:1", ":3", "1:20"]).to_owned()
        }
        "percent" if bad => pick(rng, &["101%", "-1%", "%", "50", "abc%"]).to_owned(),
        "percent" => pick(rng, &["10%", "0%", "100%", "0.5%", "1%", "33.3%", "50%", "99.99%"]).to_owned(),
        "prob" if bad => pick(rng, &["1.5", "-0.1", "abc", "2"]).to_owned(),
        "prob" => pick(rng, &["0.02", "0.1", "0.5", "1", "0.001", "0.25", "0"]).to_owned(),
        "ip" if bad => pick(rng, &["10.0.0.256", "10.0.0", "any", "::1", "host.invalid"]).to_owned(),
        "ip" => pick(rng, &["10.0.0.1", "192.168.1.77", "172.16.0.1", "224.0.0.1", "1.2.3.4", "10.1.2.3"])
            .to_owned(),
        "prefix" if bad => {
            pick(rng, &["10.0.0.0/33", "10.0.0.0/x", "any", "10.0.0.0/255.0.255.0"]).to_owned()
        }
        "prefix" => pick(
            rng,
            &[
                "10.0.0.0/8",
                "192.168.0.0/16",
                "10.3.31.88",
                "1.2.3.4/32",
                "0.0.0.0/0",
                "10.1.2.3/24",
                "172.16.0.0/12",
            ],
        )
        .to_owned(),
        "ip6" => pick(rng, &["::1", "2001:db8::1", "fe80::1", "2001:db8:0:1::77"]).to_owned(),
        "prefix6" => {
            pick(rng, &["2001:db8::/32", "fe80::/10", "::/0", "2001:db8::1", "2001:db8:1::/48"]).to_owned()
        }
        "mac" if bad => pick(rng, &["02:00:00:00:00", "zz:00:00:00:00:01", "1"]).to_owned(),
        "mac" => {
            pick(rng, &["02:00:00:00:00:01", "00:11:22:33:44:55", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"])
                .to_owned()
        }
        "port" if bad => pick(rng, &["65536", "-1", "http2", "1-"]).to_owned(),
        "port" => pick(rng, &["22", "80", "443", "5001", "1024", "65535", "53"]).to_owned(),
        "protocol" if bad => pick(rng, &["ipx5", "0x10000", "abc"]).to_owned(),
        "protocol" => {
            pick(rng, &["ip", "ip", "ip", "all", "ipv6", "arp", "802.1q", "0x0800", "802.1ad"]).to_owned()
        }
        "mark" if bad => pick(rng, &["-1", "abc", "0x100000000"]).to_owned(),
        "mark" => pick(rng, &["1", "10", "0x10", "255", "0xff00", "7", "0xffffffff"]).to_owned(),
        "dev" if bad => pick(rng, &["nosuch", "averyveryverylongname"]).to_owned(),
        "dev" => pick(rng, &["d0", "d0", "d1", "lo"]).to_owned(),
        "prio" if bad => pick(rng, &["0", "65536", "-1", "abc"]).to_owned(),
        "prio" => pick(rng, &["1", "2", "5", "10", "100", "49152", "65535"]).to_owned(),
        _ => bail!("there are no values of this name"),
    })
}
