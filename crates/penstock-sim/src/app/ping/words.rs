//! What ping says.
//!
//! Follows: iputils 20221126 (`usage`, `pr_icmph`, `print_icmp`) and s20100418, and what the first printed on Debian 12.

use crate::app::Family;
use penstock_model::Kernel;
use std::net::IpAddr;

/// `-h` of s20100418.
pub(super) const USAGE_2010: &str = "Usage: ping [-LRUbdfnqrvVaAD] [-c count] [-i interval] [-w deadline]\n            [-p pattern] [-s packetsize] [-t ttl] [-I \
    interface]\n            [-M pmtudisc-hint] [-m mark] [-S sndbuf]\n            [-T tstamp-options] [-Q tos] [hop1 ...] destination\n";

/// `-h`, and behind what is wrong.
pub(super) const USAGE: &str = concat!(
    "\n",
    "Usage\n",
    "  ping [options] <destination>\n",
    "\n",
    "Options:\n",
    "  <destination>      dns name or ip address\n",
    "  -a                 use audible ping\n",
    "  -A                 use adaptive ping\n",
    "  -B                 sticky source address\n",
    "  -c <count>         stop after <count> replies\n",
    "  -C                 call connect() syscall on socket creation\n",
    "  -D                 print timestamps\n",
    "  -d                 use SO_DEBUG socket option\n",
    "  -e <identifier>    define identifier for ping session, default is random for\n",
    "                     SOCK_RAW and kernel defined for SOCK_DGRAM\n",
    "                     Imply using SOCK_RAW (for IPv4 only for identifier 0)\n",
    "  -f                 flood ping\n",
    "  -h                 print help and exit\n",
    "  -I <interface>     either interface name or address\n",
    "  -i <interval>      seconds between sending each packet\n",
    "  -L                 suppress loopback of multicast packets\n",
    "  -l <preload>       send <preload> number of packages while waiting replies\n",
    "  -m <mark>          tag the packets going out\n",
    "  -M <pmtud opt>     define mtu discovery, can be one of <do|dont|want>\n",
    "  -n                 no dns name resolution\n",
    "  -O                 report outstanding replies\n",
    "  -p <pattern>       contents of padding byte\n",
    "  -q                 quiet output\n",
    "  -Q <tclass>        use quality of service <tclass> bits\n",
    "  -s <size>          use <size> as number of data bytes to be sent\n",
    "  -S <size>          use <size> as SO_SNDBUF socket option value\n",
    "  -t <ttl>           define time to live\n",
    "  -U                 print user-to-user latency\n",
    "  -v                 verbose output\n",
    "  -V                 print version and exit\n",
    "  -w <deadline>      reply wait <deadline> in seconds\n",
    "  -W <timeout>       time to wait for response\n",
    "\n",
    "IPv4 options:\n",
    "  -4                 use IPv4\n",
    "  -b                 allow pinging broadcast\n",
    "  -R                 record route\n",
    "  -T <timestamp>     define timestamp, can be one of <tsonly|tsandaddr|tsprespec>\n",
    "\n",
    "IPv6 options:\n",
    "  -6                 use IPv6\n",
    "  -F <flowlabel>     define flow label, default is random\n",
    "  -N <nodeinfo opt>  use icmp6 node info query, try <help> as argument\n",
    "\n",
    "For more details see ping(8).\n",
);

/// `-V`.
pub(super) fn version(kernel: Kernel) -> String {
    match kernel {
        Kernel::V2_6_35 => "ping utility, iputils-sss20100418\n".to_owned(),
        Kernel::V6_12 | Kernel::V7_2 => {
            "ping from iputils 20221126\nlibcap: yes, IDN: yes, NLS: no, error.h: yes, \
             getrandom(): yes, __fpending(): yes\n"
                .to_owned()
        }
    }
}

/// `-M` with another word.
pub(super) fn bad_pmtudisc(word: &str, kernel: Kernel) -> String {
    match kernel {
        Kernel::V2_6_35 => "ping: wrong value for -M: do, dont, want are valid ones.\n".to_owned(),
        Kernel::V6_12 | Kernel::V7_2 => format!("ping: invalid -M argument: {word}\n"),
    }
}

/// A number with something behind it (`ping_strtod`).
pub(super) fn garbage(rest: Option<&str>) -> String {
    match rest {
        None => String::new(),
        Some(rest) => format!(
            "ping: option argument contains garbage: {rest}\nping: this will become fatal error in the future\n"
        ),
    }
}

/// A packet that must not be cut, or cannot be that long.
pub(super) fn too_long(kernel: Kernel, four: bool, mtu: u32) -> String {
    let (message, is) = match (kernel, four) {
        (Kernel::V2_6_35, _) => ("Message", "="),
        (_, true) => ("message", "="),
        (_, false) => ("message", ": "),
    };
    format!("ping: local error: {message} too long, mtu{is}{mtu}\n")
}

/// What `-v` says of the sockets.
pub(super) fn sockets(family: Family, ident_0: bool) -> String {
    let (four, six, asked) = match family {
        Family::Any => ("3 (socktype: SOCK_RAW)", "4 (socktype: SOCK_RAW)", "AF_UNSPEC"),
        Family::Four => ("3 (socktype: SOCK_RAW)", "-1 (socktype: 0)", "AF_INET"),
        Family::Six => ("-1 (socktype: 0)", "3 (socktype: SOCK_RAW)", "AF_INET6"),
    };
    let warning = if ident_0 { "ping: WARNING: ident 0 => forcing raw socket\n" } else { "" };
    format!("{warning}ping: sock4.fd: {four}, sock6.fd: {six}, hints.ai_family: {asked}\n\n")
}
/// What `-v` says of the addresses of a name, up to the one that is used: the first has the name.
pub(super) fn found(target: &str, first: IpAddr, used: IpAddr) -> String {
    let line = |addr: IpAddr, name: &str| {
        let family = if addr.is_ipv4() { "AF_INET" } else { "AF_INET6" };
        format!("ai->ai_family: {family}, ai->ai_canonname: '{name}'\n")
    };
    let next = if first.is_ipv4() == used.is_ipv4() { String::new() } else { line(used, "") };
    line(first, target) + &next
}

/// An error of ICMP (`pr_icmph`).
pub(super) fn error4(ty: u8, code: u8, info: u32) -> String {
    let unreachable = match code {
        0 => "Destination Net Unreachable",
        1 => "Destination Host Unreachable",
        2 => "Destination Protocol Unreachable",
        3 => "Destination Port Unreachable",
        5 => "Source Route Failed",
        6 => "Destination Net Unknown",
        7 => "Destination Host Unknown",
        8 => "Source Host Isolated",
        9 => "Destination Net Prohibited",
        10 => "Destination Host Prohibited",
        11 => "Destination Net Unreachable for Type of Service",
        12 => "Destination Host Unreachable for Type of Service",
        13 => "Packet filtered",
        14 => "Precedence Violation",
        15 => "Precedence Cutoff",
        _ => "",
    };
    match (ty, code) {
        (3, 4) => format!("Frag needed and DF set (mtu = {info})"),
        (3, ..=15) => unreachable.to_owned(),
        (3, _) => format!("Dest Unreachable, Bad Code: {code}"),
        (11, 0) => "Time to live exceeded".to_owned(),
        (11, 1) => "Frag reassembly time exceeded".to_owned(),
        _ => format!("Time exceeded, Bad Code: {code}"),
    }
}

/// A redirect of ICMP in ping's words (`pr_icmph`).
pub(super) fn redirect4(code: u8, gateway: u32) -> String {
    let what = match code {
        0 => "Redirect Network".to_owned(),
        1 => "Redirect Host".to_owned(),
        2 => "Redirect Type of Service and Network".to_owned(),
        3 => "Redirect Type of Service and Host".to_owned(),
        _ => format!("Redirect, Bad Code: {code}"),
    };
    format!("{what}(New nexthop: {})", std::net::Ipv4Addr::from(gateway))
}

/// An error of ICMPv6 in ping's words (iputils `ping6_common.c` `print_icmp`).
pub(super) fn error6(ty: u8, code: u8, info: u32) -> String {
    let unreachable = match code {
        0 => "No route",
        1 => "Administratively prohibited",
        2 => "Beyond scope of source address",
        3 => "Address unreachable",
        4 => "Port unreachable",
        _ => "",
    };
    match (ty, code) {
        (1, 0..=4) => format!("Destination unreachable: {unreachable}"),
        (1, _) => format!("Destination unreachable: Unknown code {code}"),
        (2, 0) => format!("Packet too big: mtu={info}"),
        (2, _) => format!("Packet too big: mtu={info}, code={code}"),
        (3, 0) => "Time exceeded: Hop limit".to_owned(),
        (3, 1) => "Time exceeded: Defragmentation failure".to_owned(),
        (3, _) => format!("Time exceeded: code {code}"),
        (_, 0) => format!("Parameter problem: Wrong header field at {info}"),
        (_, 1) => format!("Parameter problem: Unknown header at {info}"),
        (_, 2) => format!("Parameter problem: Unknown option at {info}"),
        _ => format!("Parameter problem: code {code} at {info}"),
    }
}

/// The integer square root as ping takes it.
fn llsqrt(a: i128) -> i64 {
    let mut prev = i128::from(i64::MAX);
    let mut x = a;
    if x > 0 {
        while x < prev {
            prev = x;
            x = (x + a / x) / 2;
        }
    }
    x as i64
}

/// The standard deviation of `n` round trips, microseconds (`finish`).
pub(super) fn mdev(kernel: Kernel, n: i64, sum: i64, sum2: i128) -> i64 {
    let mean = sum / n;
    if kernel == Kernel::V2_6_35 || sum >= i64::from(i32::MAX) {
        return llsqrt(sum2 / i128::from(n) - i128::from(mean) * i128::from(mean));
    }
    // Doubles, as ping's: the order of its steps is seen in the last digit.
    let (n, sum) = (n as f64, sum as f64);
    llsqrt(((sum2 as f64 - sum * sum / n) / n) as i128)
}

/// A round trip as ping prints it: three significant digits from 1 ms on (`gather_statistics`), which s20100418 cuts off and today's rounds.
pub(super) fn triptime(kernel: Kernel, us: i64) -> String {
    // Where the next unit begins, and half of the last digit.
    let up = |half: i64| if kernel == Kernel::V2_6_35 { 0 } else { half };
    if us >= 100_000 - up(50) {
        return format!("{} ms", (us + up(500)) / 1000);
    }
    if us >= 10_000 - up(5) {
        let us = us + up(50);
        return format!("{}.{} ms", us / 1000, us % 1000 / 100);
    }
    if us >= 1000 {
        let us = us + up(5);
        return format!("{}.{:02} ms", us / 1000, us % 1000 / 10);
    }
    format!("{}.{:03} ms", us / 1000, us % 1000)
}

/// What `-p` says of its pattern, up to 16 bytes of hex digits (`fill`).
pub(super) fn pattern(digits: &str, kernel: Kernel) -> Result<String, String> {
    if let Some(at) = digits.find(|c: char| !c.is_ascii_hexdigit()) {
        return Err(match kernel {
            Kernel::V2_6_35 => "ping: patterns must be specified as hex digits.\n".to_owned(),
            Kernel::V6_12 | Kernel::V7_2 => {
                format!("ping: patterns must be specified as hex digits: {}\n", &digits[at..])
            }
        });
    }
    let byte = |two: &[u8]| {
        let two = std::str::from_utf8(two).expect("digits");
        format!("{two:0>2}").to_lowercase()
    };
    let bytes: String = digits.as_bytes().chunks(2).take(16).map(byte).collect();
    Ok(format!("PATTERN: 0x{bytes}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let check = |us: i64, cut: &str, rounded: &str| {
            assert_eq!(triptime(Kernel::V2_6_35, us), format!("{cut} ms"));
            assert_eq!(triptime(Kernel::V6_12, us), format!("{rounded} ms"));
        };
        check(999, "0.999", "0.999");
        check(1645, "1.64", "1.65");
        check(9994, "9.99", "9.99");
        check(9995, "9.99", "10.0");
        check(12_999, "12.9", "13.0");
        check(99_949, "99.9", "99.9");
        check(99_950, "99.9", "100");
        check(123_999, "123", "124");
    }

    #[test]
    fn the_document_s_mdev_is_ping_s() {
        // Founding document 004, section 4: twenty round trips give 1.212/1.346/1.645/0.102 ms; the
        // lines show them cut off to 10 us.
        let us = [
            1645i64, 1400, 1410, 1260, 1380, 1320, 1310, 1220, 1310, 1300, 1450, 1320, 1340, 1230, 1212,
            1350, 1410, 1480, 1260, 1240,
        ];
        let (n, sum) = (us.len() as i64, us.iter().sum::<i64>());
        let sum2 = us.iter().map(|&u| i128::from(u * u)).sum::<i128>();
        let mdev = mdev(Kernel::V2_6_35, n, sum, sum2);
        assert!((1340..=1346).contains(&(sum / n)) && (100..=107).contains(&mdev), "{sum} {mdev}");
    }
}
