#!/usr/bin/env python3
"""Records what the rule sets of this folder make of packets: of Docker, a Kubernetes node, OpenWrt's fw4, firewalld and two uplinks by the Advanced Routing HOWTO.

    record.py OUT.jsonl

One line for each rule set and seed: the commands, the packets that come in, and which rules (and policies) each of them fitted. Connections have their answers and their
handshakes. Run it in a network namespace of its own (`unshare -n`); it wants veth, connection tracking, iptables-legacy as `iptables` and nft. Where a rule set throws
dice (`statistic --mode random`) the recorded one counts instead (`--mode nth`), and ports of MASQUERADE stay what they are.
"""
import json
import os
import random
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../ipset"))
from record_packets import checksum, sh

FLAGS = {"S": 2, "SA": 0x12, "A": 0x10, "FA": 0x11, "R": 4}


def frame(p):
    data = b"x" * p["len"]
    src, dst = socket.inet_aton(p["src"]), socket.inet_aton(p["dst"])
    if p["proto"] == 6:
        l4 = struct.pack("!HHIIBBHHH", p["sport"], p["dport"], p["seq"], p["ack"], 5 << 4, FLAGS[p["flags"]], 1000, 0, 0) + data
        l4 = l4[:16] + struct.pack("!H", checksum(src + dst + struct.pack("!BBH", 0, 6, len(l4)) + l4)) + l4[18:]
    elif p["proto"] == 17:
        l4 = struct.pack("!HHHH", p["sport"], p["dport"], 8 + len(data), 0) + data
    else:
        l4 = struct.pack("!BBHHH", *p["icmp"], 0, 1, 1) + data
        l4 = l4[:2] + struct.pack("!H", checksum(l4)) + l4[4:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(l4), 1, 0, 64, p["proto"], 0, src, dst)
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    macs = bytes.fromhex(p["dmac"].replace(":", "")) + bytes.fromhex(p["smac"].replace(":", ""))
    return macs + b"\x08\x00" + ip + l4


def mac(i):
    return f"02:00:00:00:00:{i + 2:02x}"


# Devices with their address; hosts: the device they are behind; connections: protocol, client, what it calls, and where its answers come from and go to.
SETS = {
    "docker": {
        "devices": {"eth0": "203.0.113.10/24", "docker0": "172.17.0.1/16", "br-4e0a2b7c19d3": "172.18.0.1/16"},
        "more": ["ip route add default via 203.0.113.1"],
        "hosts": {"203.0.113.1": "eth0", "192.0.2.7": "eth0", "192.0.2.66": "eth0", "172.17.0.2": "docker0", "172.17.0.3": "docker0", "172.18.0.2": "br-4e0a2b7c19d3"},
        "calls": [
            (6, "192.0.2.7", ("203.0.113.10", 8080), ("172.17.0.2", 80), None), (6, "192.0.2.66", ("203.0.113.10", 8080), ("172.17.0.2", 80), None),
            (17, "192.0.2.7", ("203.0.113.10", 5353), ("172.18.0.2", 53), None), (6, "192.0.2.7", ("172.17.0.2", 80), ("172.17.0.2", 80), None),
            (6, "172.17.0.3", ("192.0.2.7", 443), ("192.0.2.7", 443), "203.0.113.10"), (17, "172.18.0.2", ("192.0.2.7", 53), ("192.0.2.7", 53), "203.0.113.10"),
            (6, "172.17.0.2", ("172.18.0.2", 53), ("172.18.0.2", 53), None), (6, "172.18.0.2", ("203.0.113.10", 8080), ("172.17.0.2", 80), None),
            (6, "192.0.2.7", ("203.0.113.10", 22), None, None), (6, "172.17.0.3", ("172.17.0.1", 22), None, None), (6, "192.0.2.7", ("172.17.0.3", 22), ("172.17.0.3", 22), None),
        ],
    },
    "kubernetes": {
        "devices": {"eth0": "192.168.10.11/24", "cni0": "10.244.0.1/24"},
        "more": ["ip route add default via 192.168.10.1", "ip route add 10.244.1.0/24 via 192.168.10.12"],
        "hosts": {"192.168.10.1": "eth0", "192.168.10.12": "eth0", "198.51.100.7": "eth0", "10.244.1.9": "eth0", "10.244.0.5": "cni0", "10.244.0.6": "cni0", "10.244.0.8": "cni0"},
        "calls": [
            (17, "10.244.0.8", ("10.96.0.10", 53), ("10.244.0.5", 53), None), (17, "10.244.1.9", ("10.96.0.10", 53), ("10.244.0.5", 53), None),
            (6, "10.244.0.8", ("10.96.5.5", 80), ("10.244.0.5", 8080), None), (6, "10.244.0.8", ("10.96.5.5", 80), ("10.244.0.6", 8080), None),
            (6, "198.51.100.7", ("192.168.10.11", 30080), ("10.244.0.5", 8080), "10.244.0.1"), (6, "198.51.100.7", ("192.168.10.11", 30080), ("10.244.0.6", 8080), "10.244.0.1"),
            (6, "198.51.100.7", ("192.0.2.40", 80), ("10.244.0.6", 8080), "10.244.0.1"), (6, "10.244.0.8", ("10.96.6.6", 9000), ("10.244.0.5", 9000), None),
            (6, "10.244.1.9", ("10.96.6.6", 9000), ("10.244.0.6", 9000), None), (6, "10.244.0.8", ("10.96.7.7", 80), None, None), (6, "198.51.100.7", ("192.168.10.11", 30999), None, None),
            (6, "198.51.100.7", ("192.168.10.11", 32100), None, None), (6, "10.244.0.8", ("198.51.100.7", 443), ("198.51.100.7", 443), "192.168.10.11"),
            (6, "10.244.0.5", ("10.96.5.5", 80), ("10.244.0.5", 8080), "10.244.0.1"), (6, "10.244.1.9", ("10.244.0.6", 8080), ("10.244.0.6", 8080), None),
        ],
    },
    "lartc": {
        "devices": {"eth0": "203.0.113.10/24", "eth1": "10.0.0.1/24", "eth2": "198.51.100.10/24"},
        "more": ["ip route add default via 203.0.113.1", "ip route add default via 198.51.100.1 table 2", "ip rule add fwmark 2 lookup 2"],
        "hosts": {"203.0.113.1": "eth0", "198.51.100.1": "eth2", "192.0.2.7": "eth0", "192.0.2.9": "eth2", "10.0.0.25": "eth1", "10.0.0.7": "eth1"},
        "calls": [
            (6, "10.0.0.7", ("192.0.2.7", 25), ("192.0.2.7", 25), "203.0.113.10"), (6, "10.0.0.7", ("192.0.2.9", 80), ("192.0.2.9", 80), "198.51.100.10"),
            (17, "10.0.0.7", ("192.0.2.7", 123), ("192.0.2.7", 123), "203.0.113.10"), (17, "10.0.0.7", ("192.0.2.7", 53), None, None), (17, "10.0.0.7", ("10.0.0.1", 53), None, None),
            (6, "192.0.2.7", ("203.0.113.10", 25), ("10.0.0.25", 25), None), (6, "192.0.2.9", ("198.51.100.10", 2525), ("10.0.0.25", 25), None), (6, "192.0.2.7", ("203.0.113.10", 22), None, None),
            (6, "192.0.2.9", ("10.0.0.7", 80), ("10.0.0.7", 80), None), (6, "10.0.0.7", ("10.0.0.1", 22), None, None),
        ],
    },
    "fw4": {
        "devices": {"wan": "203.0.113.10/24", "br-lan": "192.168.1.1/24"},
        "more": ["ip route add default via 203.0.113.1"],
        "hosts": {"203.0.113.1": "wan", "192.0.2.7": "wan", "192.168.1.20": "br-lan", "192.168.1.21": "br-lan", "192.168.1.7": "br-lan"},
        "calls": [
            (6, "192.168.1.7", ("192.0.2.7", 443), ("192.0.2.7", 443), "203.0.113.10"), (17, "192.168.1.7", ("192.0.2.7", 53), ("192.0.2.7", 53), "203.0.113.10"),
            (6, "192.0.2.7", ("203.0.113.10", 8443), ("192.168.1.20", 443), None), (17, "192.0.2.7", ("203.0.113.10", 51820), ("192.168.1.21", 51820), None),
            (6, "192.168.1.7", ("203.0.113.10", 8443), ("192.168.1.20", 443), "192.168.1.1"), (6, "192.0.2.7", ("203.0.113.10", 22), None, None),
            (6, "192.168.1.7", ("192.168.1.1", 22), None, None), (17, "192.0.2.7", ("203.0.113.10", 68), None, None), (6, "192.0.2.7", ("192.168.1.20", 443), ("192.168.1.20", 443), None),
            (17, "192.0.2.7", ("203.0.113.10", 9999), None, None),
        ],
    },
    "firewalld": {
        "devices": {"eth0": "203.0.113.10/24", "eth1": "10.0.0.1/24"},
        "more": ["ip route add default via 203.0.113.1"],
        "hosts": {"203.0.113.1": "eth0", "192.0.2.7": "eth0", "192.0.2.66": "eth0", "10.0.0.22": "eth1", "10.0.0.7": "eth1"},
        "calls": [
            (6, "10.0.0.7", ("192.0.2.7", 443), ("192.0.2.7", 443), "203.0.113.10"), (17, "10.0.0.7", ("192.0.2.7", 53), ("192.0.2.7", 53), "203.0.113.10"),
            (6, "192.0.2.7", ("203.0.113.10", 2222), ("10.0.0.22", 22), None), (6, "192.0.2.7", ("203.0.113.10", 2223), None, None), (6, "192.0.2.66", ("203.0.113.10", 22), None, None),
            (6, "192.0.2.7", ("203.0.113.10", 80), None, None), (17, "192.0.2.7", ("203.0.113.10", 500), None, None), (6, "10.0.0.7", ("10.0.0.1", 53), None, None),
            (17, "10.0.0.7", ("10.0.0.1", 9999), None, None), (6, "192.0.2.7", ("10.0.0.7", 22), ("10.0.0.7", 22), None),
        ],
    },
}


def case(name, seed):
    r = random.Random(f"{name}{seed}")
    s = SETS[name]
    names = list(s["devices"])
    before = ["sysctl -qw net.ipv4.ip_forward=1", "sysctl -qw net.ipv4.icmp_ratelimit=0", "sysctl -qw net.ipv4.conf.all.rp_filter=0", "sysctl -qw net.ipv4.conf.all.send_redirects=0"]
    # What a machine may say in all: messages without a route are not limited either.
    sh("sysctl -qw net.ipv4.icmp_ratemask=0")
    setup = before + ["ip link set lo up"]
    for i, dev in enumerate(names):
        # Random marks would be lost: ports of a device are of this run only.
        sh(f"ip link add {dev} address {mac(i)} type veth peer name wire{i}; sysctl -qw net.ipv6.conf.wire{i}.disable_ipv6=1 net.ipv6.conf.{dev}.disable_ipv6=1; ip link set wire{i} up")
        setup += [f"sysctl -qw net.ipv4.conf.{dev}.rp_filter=0", f"sysctl -qw net.ipv4.conf.{dev}.send_redirects=0", f"ip link set {dev} up", f"ip addr add {s['devices'][dev]} dev {dev}"]
    for i, (host, dev) in enumerate(s["hosts"].items()):
        setup.append(f"ip neigh add {host} lladdr 02:00:00:00:01:{i:02x} dev {dev} nud permanent")
    setup += s["more"]
    for end, line in [("ipset", "ipset restore"), ("rules", "iptables-restore"), ("nft", "nft -f -")]:
        path = f"{HERE}/{name}.{end}"
        if os.path.exists(path):
            text = open(path).read().replace("--mode random --probability 0.50000000000", "--mode nth --every 2 --packet 0").replace(" --random-fully", "")
            setup.append([line, text])
    status = []
    for line in setup:
        if isinstance(line, list):
            open("/tmp/record-stdin", "w").write(line[1])
            done = sh(f"{line[0]} < /tmp/record-stdin")
        else:
            done = sh(line)
        if done.returncode != 0:
            print(name, line if isinstance(line, str) else line[0], done.stderr, file=sys.stderr)
        status.append(done.returncode)
    counts = ["nft list ruleset"] if os.path.exists(f"{HERE}/{name}.nft") else [f"iptables -t {t} -S -v" for t in ("raw", "mangle", "nat", "filter")]

    def counted():
        out = []
        for line in counts:
            for text in sh(line).stdout.splitlines():
                if " -c " in text:
                    out.append(int(text.split(" -c ")[1].split()[0]))
                elif "counter packets " in text:
                    out.append(int(text.split("counter packets ")[1].split()[0]))
        return out

    def calls():
        """Packets of one connection, in order."""
        proto, client, (to, port), answers, masked = r.choice(s["calls"])
        sport = r.randrange(32768, 61000)
        there = {"from": client, "src": client, "dst": to, "sport": sport, "dport": port}
        back = answers and {"from": answers[0], "src": answers[0], "dst": masked or client, "sport": answers[1], "dport": sport}
        if proto == 17:
            return [dict(p, proto=17) for p in (there, back, there, back) if p]
        steps = [(there, "S", 1, 0, 0), (back, "SA", 101, 2, 0), (there, "A", 2, 102, 0), (there, "A", 2, 102, 10), (back, "A", 102, 12, 20), (there, "FA", 12, 122, 0), (back, "FA", 122, 13, 0),
                 (there, "A", 13, 123, 0)]
        return [dict(p, proto=6, flags=f, seq=q, ack=a, len=n) for p, f, q, a, n in steps[:r.choice([1, 3, 5, 8])] if p]

    def stray():
        client, to = r.choice(list(s["hosts"])), r.choice(list(s["hosts"]) + [a.split("/")[0] for a in s["devices"].values()])
        p = {"from": client, "src": r.choice([client, client, r.choice(list(s["hosts"]))]), "dst": to, "proto": r.choice([1, 1, 6, 17]), "sport": r.randrange(1024, 60000),
             "dport": r.choice([22, 53, 80, 443, 8080, 68]), "flags": r.choice(list(FLAGS)), "seq": 1, "ack": 1, "icmp": r.choice([[8, 0], [8, 0], [0, 0]])}
        return [p]

    packets, fitted = [], []
    old = counted()
    open_ = []
    while len(packets) < 60:
        if len(open_) < 3:
            open_.append(stray() if r.randrange(4) == 0 else calls())
        which = r.choice(open_)
        p = {"len": 4, "icmp": [8, 0], "flags": "S", "seq": 1, "ack": 0, **which.pop(0)}
        open_ = [w for w in open_ if w]
        client = p.pop("from")
        dev = s["hosts"][client]
        p.update({"in": dev, "dmac": mac(names.index(dev)), "smac": f"02:00:00:00:01:{list(s['hosts']).index(client):02x}"})
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sock.bind((f"wire{names.index(dev)}", 0))
        sock.send(frame(p))
        sock.close()
        new = counted()
        fitted.append([i for i, (a, b) in enumerate(zip(old, new)) if a != b])
        old = new
        packets.append(p)
    return {"name": name, "seed": seed, "devices": [[d, mac(i)] for i, d in enumerate(names)], "setup": setup, "status": status, "counts": counts, "packets": packets, "fitted": fitted}


def main():
    # Each in a namespace of its own.
    if len(sys.argv) == 4:
        print(json.dumps(case(sys.argv[2], int(sys.argv[3]))))
        return
    with open(sys.argv[1], "w") as f:
        for name in SETS:
            for seed in range(8):
                f.write(os.popen(f"unshare -n python3 {os.path.abspath(__file__)} - {name} {seed}").read())


main()
