#!/usr/bin/env python3
"""Records what rules that ask the routes make of packets: -m rpfilter, -m addrtype, nft's fib, zones of connections.

    record.py FIRST COUNT OUT.jsonl

One line for each seed: the commands, the packets that come in by eth0 and eth1, and which rules each of them fitted. Run it in a network namespace of its own
(`unshare -n`); it wants veth, ipt_rpfilter, nft_fib and connection tracking.
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../ipset"))
import socket

from record_packets import frame, sh

MACS = ["02:00:00:00:00:02", "02:00:00:00:00:03"]


def address(r):
    return r.choice(["10.0.0.1", "10.0.0.7", "10.0.0.255", "10.1.0.1", "10.1.0.9", "10.2.0.5", "10.3.0.5", "10.4.0.5", "10.5.0.5", "192.0.2.9", "224.0.0.1", "224.1.0.1",
                     "255.255.255.255", "0.0.0.0", "127.0.0.1"])


def rule(r):
    kind = r.randrange(9)
    not_ = r.choice(["", "! "])
    if kind < 3:
        words = "".join(f" --{w}" for w in ("loose", "validmark", "accept-local", "invert") if r.randrange(3) == 0)
        return f"iptables -t {r.choice(['raw', 'mangle'])} -A PREROUTING -m rpfilter{words}"
    if kind == 3:
        side = r.choice(["src", "dst"])
        types = r.choice(["LOCAL", "BROADCAST", "MULTICAST", "UNICAST", "LOCAL,BROADCAST"])
        return f"iptables -t mangle -A PREROUTING -m addrtype {not_}--{side}-type {types}" + r.choice(["", " --limit-iface-in"])
    if kind == 4:
        which = r.choice(["saddr", "daddr"])
        by = which + r.choice(["", " . iif"])
        return f"nft add rule ip t pre fib {by} type {r.choice(['', '!= '])}{r.choice(['local', 'broadcast', 'multicast', 'unicast', '{ local, broadcast }'])} counter"
    by = r.choice(["saddr", "saddr", "daddr"]) + r.choice(["", " . mark"]) + r.choice(["", " . iif"])
    what = r.choice(["oif missing", "oif exists", "oif missing", "oifname eth0", "oifname != eth1", "oif eth1"])
    return f"nft add rule ip t pre fib {by} {what} counter"


def case(seed):
    r = random.Random(seed)
    sh("nft flush ruleset; iptables -t raw -F; iptables -t mangle -F; ip link del eth0; ip link del eth1; ip rule del fwmark 1; ip route del blackhole 10.4.0.0/16; ip route del unreachable 10.5.0.0/16; ip route flush table 100")
    for i, mac in enumerate(MACS):
        sh(f"ip link add eth{i} address {mac} type veth peer name wire{i}; sysctl -qw net.ipv6.conf.wire{i}.disable_ipv6=1 net.ipv6.conf.eth{i}.disable_ipv6=1")
        sh(f"ip link set wire{i} up")
    setup = ["ip link set lo up", "ip link set eth0 up", "ip link set eth1 up", "sysctl -qw net.ipv4.conf.all.rp_filter=0", "sysctl -qw net.ipv4.conf.eth0.rp_filter=0",
             "sysctl -qw net.ipv4.conf.eth1.rp_filter=0", "ip addr add 10.0.0.1/24 dev eth0", "ip addr add 10.1.0.1/24 dev eth1", "ip neigh add 10.0.0.7 lladdr 02:00:00:00:00:99 dev eth0 nud permanent",
             "ip route add 10.2.0.0/16 via 10.0.0.7"]
    more = ["ip route add 10.3.0.0/16 via 10.1.0.9", "ip route add blackhole 10.4.0.0/16", "ip route add unreachable 10.5.0.0/16", "ip route add default via 10.0.0.7",
            "ip route add 10.2.0.0/16 via 10.1.0.9 table 100", "ip rule add fwmark 1 lookup 100"]
    setup += [line for line in more if r.randrange(2)]
    setup += ["nft add table ip t", "nft add chain ip t pre { type filter hook prerouting priority 10 ; }"]
    if r.randrange(2):
        setup.append("iptables -t raw -A PREROUTING -p udp -j MARK --set-mark 1")
    setup += [rule(r) for _ in range(8)]
    status = [sh(line.replace("{ type", "'{ type").replace("; }", "; }'").replace("{ local, broadcast }", "'{ local, broadcast }'")).returncode for line in setup]
    counts = ["iptables -t raw -S PREROUTING -v", "iptables -t mangle -S PREROUTING -v", "nft list chain ip t pre"]

    def counted():
        out = []
        for line in counts:
            for text in sh(line).stdout.splitlines():
                if " -c " in text:
                    out.append(int(text.split(" -c ")[1].split()[0]))
                elif "counter packets " in text:
                    out.append(int(text.split("counter packets ")[1].split()[0]))
        # The policies are the packets' too.
        return out

    packets, fitted = [], []
    before = counted()
    for _ in range(20):
        port = r.randrange(2)
        p = {"in": f"eth{port}", "dmac": MACS[port], "smac": "02:00:00:00:01:01", "src": address(r), "dst": address(r), "proto": r.choice([17, 17, 6, 1]), "sport": 90,
             "dport": 91, "icmp": [0, 0], "len": 4}
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind((f"wire{port}", 0))
        s.send(frame(p))
        s.close()
        now = counted()
        fitted.append([i for i, (a, b) in enumerate(zip(before, now)) if a != b])
        before = now
        packets.append(p)
    return {"seed": seed, "devices": [["eth0", MACS[0]], ["eth1", MACS[1]]], "setup": setup, "status": status, "counts": counts, "packets": packets, "fitted": fitted}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(out, "w") as f:
        for seed in range(first, first + count):
            f.write(json.dumps(case(seed)) + "\n")


main()
