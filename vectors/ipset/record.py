#!/usr/bin/env python3
"""Records what sets of ipset make of packets.

    record.py FIRST COUNT OUT.jsonl

One line for each seed: the commands, the packets that come in by eth0, which rules of PREROUTING each of them fitted, and the sets afterwards (`ipset save`).
Run it in a kernel of one's own (`run-in-kernel --engine uml`): it wants ip_set and all its types, xt_set, veth. Nothing outside the network namespaces it makes is
touched.
"""
import json
import random
import socket
import sys

from record_packets import OURS, frame, sh

TYPES = ["hash:ip", "hash:ip,mac", "hash:ip,mark", "hash:ip,port", "hash:ip,port,ip", "hash:ip,port,net", "hash:mac", "hash:net", "hash:net,iface",
         "hash:net,net", "hash:net,port", "hash:net,port,net", "bitmap:ip", "bitmap:ip,mac", "bitmap:port"]


def address(r):
    return f"10.0.{r.randrange(3)}.{r.randrange(12)}"


def network(r):
    length = r.choice([8, 16, 23, 24, 28, 30, 31, 32])
    return f"{address(r)}/{length}"


def small(r):
    return f"{address(r)}/{r.choice([26, 28, 30, 31, 32])}"


def span(r):
    first = r.randrange(8)
    return f"10.0.{r.randrange(3)}.{first}-10.0.{r.randrange(3)}.{first + r.randrange(5)}"


def mac(r):
    return f"02:00:00:00:01:{r.randrange(4):02x}"


def port(r):
    kind = r.randrange(8)
    if kind == 0:
        return r.choice(["icmp:ping", "icmp:echo-reply", "icmp:3/1"])
    if kind == 1:
        return r.choice(["gre:0", "47:0", "esp:0"])
    first = 80 + r.randrange(4)
    text = str(first) if r.randrange(3) else f"{first}-{first + r.randrange(3)}"
    return r.choice(["", "tcp:", "udp:", "udp:"]) + text


def any_ip(r):
    return r.choice([address, address, span, small])(r)


def any_net(r):
    return r.choice([address, network, network, span])(r)


def element(kind, r):
    return {
        "hash:ip": lambda: any_ip(r),
        "hash:ip,mac": lambda: f"{address(r)},{mac(r)}",
        "hash:ip,mark": lambda: f"{any_ip(r)},{r.randrange(3)}",
        "hash:ip,port": lambda: f"{any_ip(r)},{port(r)}",
        "hash:ip,port,ip": lambda: f"{any_ip(r)},{port(r)},{address(r)}",
        "hash:ip,port,net": lambda: f"{any_ip(r)},{port(r)},{any_net(r)}",
        "hash:mac": lambda: mac(r),
        "hash:net": lambda: any_net(r),
        "hash:net,iface": lambda: f"{r.choice([any_net(r), '0.0.0.0/0'])},{r.choice(['eth0', 'eth1', 'eth'])}",
        "hash:net,net": lambda: f"{any_net(r)},{any_net(r)}",
        "hash:net,port": lambda: f"{any_net(r)},{port(r)}",
        "hash:net,port,net": lambda: f"{any_net(r)},{port(r)},{any_net(r)}",
        "bitmap:ip": lambda: any_ip(r),
        "bitmap:ip,mac": lambda: r.choice([address(r), f"{address(r)},{mac(r)}"]),
        "bitmap:port": lambda: str(80 + r.randrange(8)),
    }[kind]()


def dim(kind):
    return kind.count(",") + 1


def directions(kind, r):
    count = dim(kind) + (r.randrange(6) == 0)
    if r.randrange(12) == 0 and count > 1:
        count -= 1
    return ",".join(r.choice(["src", "dst"]) for _ in range(count))


def made(r):
    """Commands, and the names and types of the sets."""
    out, sets = [], []
    for i in range(r.randrange(2, 5)):
        kind = r.choice(TYPES)
        name = f"s{i}"
        line = f"ipset create {name} {kind}"
        if kind in ("bitmap:ip", "bitmap:ip,mac"):
            line += " range 10.0.0.0/22"
        elif kind == "bitmap:port":
            line += " range 80-90"
        else:
            line += f" initval {r.randrange(1 << 32):#x} hashsize 64"
            if r.randrange(4) == 0:
                line += f" maxelem {r.choice([3, 10, 40])}"
                line += r.choice(["", " forceadd"])
            if kind == "hash:ip" and r.randrange(3) == 0:
                line += f" netmask {r.choice([24, 28, 31])}"
            if kind == "hash:ip,mark" and r.randrange(2):
                line += " markmask 0x1"
        counters = r.randrange(2) == 0
        info = r.randrange(3) == 0
        line += " counters" * counters + " skbinfo" * info
        line += " comment" * (r.randrange(4) == 0)
        out.append(line)
        sets.append((name, kind, counters, info))
        for _ in range(r.randrange(1, 14)):
            line = f"ipset {r.choice(['add', 'add', 'add', 'add', 'del'])} {name} {element(kind, r)}"
            if " add " in line:
                if ("net" in kind) and r.randrange(4) == 0:
                    line += " nomatch"
                if kind == "hash:net,iface" and line.split(",")[-1].startswith("eth ") or line.endswith(",eth"):
                    line += " wildcard"
                if counters and r.randrange(3) == 0:
                    line += f" packets {r.randrange(9)} bytes {r.randrange(900)}"
                if info and r.randrange(2):
                    line += f" skbmark {r.randrange(16):#x}/{r.choice([0xf, 0xff, 0xffffffff]):#x} skbprio {r.randrange(4)}:{r.randrange(9)}"
            out.append(line + r.choice(["", " -exist"]))
    if r.randrange(2):
        members = [s for s in sets if r.randrange(2)] or sets[:1]
        counters = r.randrange(2) == 0
        out.append("ipset create all list:set" + " counters" * counters)
        for s in members:
            out.append(f"ipset add all {s[0]}")
        sets.append(("all", max((s[1] for s in members), key=dim), counters, False))
    return out, sets


def rule(sets, r):
    name, kind, counters, info = r.choice(sets)
    text = "iptables -t mangle -A PREROUTING"
    if r.randrange(5) == 0:
        what = r.choice(["--add-set", "--add-set", "--del-set"])
        text += f" -j SET {what} {name} {directions(kind, r)}"
        if what == "--add-set" and r.randrange(2):
            text += " --exist"
    elif info and r.randrange(2):
        text += f" -j SET --map-set {name} {directions(kind, r)} --map-mark"
    else:
        text += f" -m set {r.choice(['', '', '! '])}--match-set {name} {directions(kind, r)}"
        if r.randrange(6) == 0:
            text += " --return-nomatch"
        if counters and r.randrange(3) == 0:
            text += " ! --update-counters"
        if counters and r.randrange(4) == 0:
            text += f" --packets-{r.choice(['gt', 'lt', 'eq'])} {r.randrange(6)}"
        if counters and r.randrange(6) == 0:
            text += f" ! --bytes-eq {r.randrange(900)}"
        if name == "all" and r.randrange(4) == 0:
            text += " ! --update-subcounters"
    return text


def packet(r):
    proto = r.choice([6, 17, 17, 1, 47])
    return {"smac": mac(r), "src": address(r), "dst": address(r), "proto": proto, "sport": 80 + r.randrange(6), "dport": 80 + r.randrange(6),
            "icmp": r.choice([[8, 0], [0, 0], [3, 1]]), "len": r.randrange(30)}


def counts():
    text = sh("iptables -t mangle -S PREROUTING -v").stdout
    rules = [l for l in text.splitlines() if l.startswith("-A")]
    return [int(l.split(" -c ")[1].split()[0]) for l in rules]


def case(seed):
    r = random.Random(seed)
    sh("ip netns del t; ip netns del o; ip netns add t; ip netns add o")
    sh(f"ip -n t link add eth0 address {OURS} type veth peer name wire netns o; ip -n t link set eth0 up; ip -n o link set wire up; ip -n t link set lo up")
    sh("ip netns exec t sysctl -qw net.ipv6.conf.all.disable_ipv6=1; ip netns exec o sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
    setup, sets = made(r)
    setup += [rule(sets, r) for _ in range(r.randrange(3, 10))]
    setup += [f"iptables -t mangle -A PREROUTING -m mark --mark {n}" for n in (1, 2, 5)]
    statuses = []
    enter("t")
    for line in setup:
        statuses.append(sh(line).returncode)
    packets = [packet(r) for _ in range(25)]
    before, fitted = counts(), []
    for p in packets:
        enter("o")
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind(("wire", 0))
        s.send(frame(p))
        s.close()
        enter("t")
        now = counts()
        fitted.append([i for i, (a, b) in enumerate(zip(before, now)) if a != b])
        before = now
    save = sh("ipset save").stdout.splitlines()
    return {"seed": seed, "setup": setup, "status": statuses, "packets": packets, "fitted": fitted, "save": save}


def enter(name):
    import ctypes
    with open(f"/run/netns/{name}") as f:
        ctypes.CDLL(None).setns(f.fileno(), 0x40000000)


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(out, "w") as f:
        for seed in range(first, first + count):
            f.write(json.dumps(case(seed)) + "\n")
            f.flush()


main()
