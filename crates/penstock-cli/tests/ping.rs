//! `penstock ping`: packets on the machine that lives between calls.

mod scratch;

use scratch::{Scratch, text};
use std::path::Path;
use std::process::Command;

/// Standard output, standard error, exit status.
type Gave = (String, String, i32);

fn penstock(state: &Path, line: &str) -> Gave {
    let output = Command::new(env!("CARGO_BIN_EXE_penstock"))
        .args(line.split_whitespace())
        .current_dir(state)
        .env("PENSTOCK_STATE", state)
        .env_remove("PENSTOCK_KERNEL")
        .env_remove("PENSTOCK_ADVICE")
        .output()
        .unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

/// Carries out lines, all of which must succeed.
fn all(state: &Path, lines: &[&str]) {
    for line in lines {
        let gave = penstock(state, line);
        assert_eq!(gave.2, 0, "{line}: {gave:?}");
    }
}

const DUMMY: [&str; 3] =
    ["ip link add dummy0 type dummy", "ip link set dummy0 up", "ip addr add 10.10.10.10/24 dev dummy0"];

#[test]
fn packets_stand_in_a_queue_from_call_to_call() {
    let folder = Scratch::new("ping-queue");
    let run = |line: &str| penstock(&folder.0, line);
    all(&folder.0, &DUMMY);
    all(&folder.0, &["tc qdisc add dev dummy0 root handle 1: tbf rate 8bit burst 100b latency 1000s"]);
    let (stdout, stderr, status) = run("ping -c 3 -i 0.001 -W 0.01 -I dummy0 10.10.10.1");
    assert!(
        stdout.starts_with(
            "PING 10.10.10.1 (10.10.10.1) from 10.10.10.10 dummy0: 56(84) bytes of data.\n\n--- 10.10.10.1 ping statistics ---\n\
             3 packets transmitted, 0 received, 100% packet loss, time "
        ),
        "{stdout}"
    );
    assert_eq!((stderr.as_str(), status), ("", 1));
    let shown = run("tc -s qdisc show dev dummy0").0;
    assert!(
        shown.contains("Sent 98 bytes 1 pkt (dropped 0,") && shown.contains("backlog 196b 2p"),
        "{shown}"
    );
    assert_eq!(run("tc -s qdisc show dev dummy0").0, shown, "to look takes no time");
    // 98 bytes at a byte a second: a ping that waits for 120 s lets one of them go.
    assert_eq!(run("ping -c 1 -W 120 -I dummy0 10.10.10.1").2, 1);
    let shown = run("tc -s qdisc show dev dummy0").0;
    assert!(
        shown.contains("Sent 196 bytes 2 pkt (dropped 0,") && shown.contains("backlog 196b 2p"),
        "{shown}"
    );
    all(&folder.0, &["tc qdisc replace dev dummy0 root handle 2: pfifo"]);
    let shown = run("tc -s qdisc show dev dummy0").0;
    assert!(shown.contains("Sent 0 bytes 0 pkt") && shown.contains("backlog 0b 0p"), "{shown}");
}

#[test]
fn a_delay_is_over_when_time_has_come_to_it() {
    let folder = Scratch::new("ping-netem");
    let run = |line: &str| penstock(&folder.0, line);
    all(&folder.0, &DUMMY);
    all(&folder.0, &["tc qdisc add dev dummy0 root netem delay 5ms"]);
    assert_eq!(run("ping -c 1 -W 0.002 10.10.10.1").2, 1);
    let backlog = |packets: u32| {
        let shown = run("tc -s qdisc show dev dummy0").0;
        assert!(shown.contains(&format!("{packets}p requeues 0")), "{packets}: {shown}");
    };
    backlog(1);
    // Each command is a millisecond after the one before.
    all(&folder.0, &["sysctl -w net.ipv4.ip_forward=1"]);
    backlog(1);
    all(&folder.0, &["sysctl -w net.ipv4.ip_forward=0"]);
    backlog(0);
}

#[test]
fn own_addresses_and_the_ends_of_pairs_answer() {
    let folder = Scratch::new("ping-veth");
    let run = |line: &str| penstock(&folder.0, line);
    let (stdout, _, status) = run("ping -c 2 -i 0.2 127.0.0.1");
    assert!(stdout.contains("64 bytes from 127.0.0.1: icmp_seq=2 ttl=64 time="), "{stdout}");
    assert!(stdout.contains("2 packets transmitted, 2 received, 0% packet loss") && status == 0, "{stdout}");
    all(
        &folder.0,
        &[
            "ip netns add far",
            "ip link add v0 type veth peer name v1 netns far",
            "ip addr add 192.0.2.1/24 dev v0",
            "ip link set v0 up",
            "ip netns exec far ip addr add 192.0.2.2/24 dev v1",
            "ip -n far link set v1 up",
            "tc qdisc add dev v0 root netem delay 10ms",
        ],
    );
    let (stdout, _, status) = run("ping -c 1 192.0.2.2");
    assert!(
        stdout.contains("64 bytes from 192.0.2.2: icmp_seq=1 ttl=64 time=20.0 ms") && status == 0,
        "{stdout}"
    );
    let (stdout, _, status) = run("ip netns exec far ping -c 1 192.0.2.1");
    assert!(
        stdout.contains("64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=10.0 ms") && status == 0,
        "{stdout}"
    );
    assert!(run("ip -n far neigh").0.starts_with("192.0.2.1 dev v1 lladdr "));
    let (stdout, _, status) = run("ping -c 1 192.0.2.9");
    assert!(
        stdout.contains("From 192.0.2.1 icmp_seq=1 Destination Host Unreachable") && status == 1,
        "{stdout}"
    );
    assert_eq!(run("ip netns exec near ping -c 1 192.0.2.1").2, 255);
}

#[test]
fn what_cannot_be_sent_is_said_as_ping_says_it() {
    let folder = Scratch::new("ping-wrong");
    let run = |line: &str| penstock(&folder.0, line);
    let says = |line: &str, stderr: &str, status: i32| {
        let gave = run(line);
        assert_eq!(
            (gave.1.lines().next().unwrap_or_default(), gave.2),
            (stderr, status),
            "{line}: {}",
            gave.0
        );
        assert_eq!(gave.0, "", "{line}");
    };
    says("ping -c 1 10.9.9.9", "ping: connect: Network is unreachable", 2);
    for (kind, net) in [("blackhole", 6), ("unreachable", 7), ("prohibit", 8)] {
        assert_eq!(run(&format!("ip route add {kind} 10.{net}.0.0/16")).2, 0);
    }
    says("ping -c 1 10.6.0.1", "ping: connect: Invalid argument", 2);
    says("ping -c 1 10.7.0.1", "ping: connect: No route to host", 2);
    says(
        "ping -c 1 10.8.0.1",
        "ping: Do you want to ping broadcast? Then -b. If not, check your local firewall rules",
        2,
    );
    says("ping -c 1 -I eth7 10.9.9.9", "ping: SO_BINDTODEVICE eth7: No such device", 2);
    says("ping -c 1 nobody.example", "ping: nobody.example: Name or service not known", 2);
    says("ping -c x 10.9.9.9", "ping: invalid argument: 'x'", 1);
    says("ping -Z", "ping: invalid option -- 'Z'", 2);
    says(
        "ping -R -c 1 10.9.9.9",
        "ping: -R is not simulated: there are no options of IP, and routes are followed",
        2,
    );
    says("ping", "ping: usage error: Destination address required", 1);
    let (stdout, stderr, status) = run("ping 127.0.0.1");
    assert!(stderr.contains("write -c COUNT or -w SECONDS") && stdout.is_empty() && status == 2, "{stderr}");
    let (stdout, stderr, status) = run("ping -f -w 1000 127.0.0.1");
    assert!(stderr.contains("has not happened") && stdout.is_empty() && status == 2, "{stderr}");
    let (stdout, stderr, status) = run("ping -V");
    assert!(stdout.starts_with("ping from iputils") && stderr.is_empty() && status == 0, "{stdout}");
}

#[test]
fn scripts_send_on_the_same_machine() {
    let folder = Scratch::new("ping-script");
    let script = "ip link add dummy0 type dummy; ip link set dummy0 up; ip addr add 10.10.10.10/24 dev dummy0\n\
        tc qdisc add dev dummy0 root handle 1: netem delay 1s\n\
        if ping -c 1 -W 0.01 -I dummy0 10.10.10.1 > /dev/null; then echo answered; else echo \"none: $?\"; fi\n\
        ping -c 1 127.0.0.1 | grep -o '1 received'\n\
        ping nobody.example -c 1 2>&1 | tail -1\n\
        tc -s qdisc show dev dummy0 | grep -o 'backlog.*p '\n\
        sleep 1; ip link set dummy0 mtu 1400\n\
        tc -s qdisc show dev dummy0 | grep -o 'backlog.*p '\n\
        ping -c 1 -W 0.01 -I dummy0 10.10.10.1 > /dev/null\n\
        exit 0\n";
    std::fs::write(folder.0.join("try.sh"), script).unwrap();
    let gave = penstock(&folder.0, "shell try.sh");
    let want = "none: 1\n1 received\nping: nobody.example: Name or service not known\nbacklog 98b 1p \nbacklog 0b 0p \n";
    assert_eq!(gave, (want.to_owned(), String::new(), 0));
    let shown = penstock(&folder.0, "tc -s qdisc show dev dummy0").0;
    assert!(shown.contains("backlog 98b 1p"), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_link_called_ping_is_this_ping() {
    let folder = Scratch::new("ping-link");
    let link = folder.0.join("ping");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_penstock"), &link).unwrap();
    let state = folder.0.join("state");
    let output =
        Command::new(link).args(["-c", "1", "127.0.0.1"]).env("PENSTOCK_STATE", state).output().unwrap();
    assert!(text(&output.stdout).contains("1 packets transmitted, 1 received"), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(0));
}
