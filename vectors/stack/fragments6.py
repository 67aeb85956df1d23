#!/usr/bin/env python3
"""Records what a real router does with fragments of IPv6: those for it, those it sends on, those it makes itself.

    fragments6.py FIRST COUNT OUT.jsonl

One line for each seed: the commands, what is put on the router's wires or sent by itself, what came out of it before each step (timers) and after it, and the
counters of its rules at the end. Run it inside the user-mode kernel, where time is exact (`penstock kernel build`), beside `six.py`, whose router it takes.
Nothing outside two network namespaces of its own is touched.
"""
import json
import os
import random
import re
import socket
import struct
import sys
import time

import six
from six import HOST_MAC, LINK, MACS, NUMBER, OURS, Router, body_of, checksum, ip6, mac, sh, text6

LAN, WAN = ["fd00:1::11", "fd00:1::12"], ["fd00:2::21", "fd00:2::22"]
NAMES = {58: "icmp", 6: "tcp", 17: "udp"}


def fragment_of(ip, at):
    """Upper protocol and the fragment header at `at`."""
    upper, _, off, number = struct.unpack("!BBHI", ip[at:at + 8])
    return upper, {"off": off & 0xfff8, "more": off & 1, "id": number}


def read(frame):
    if frame[12:14] != b"\x86\xdd":
        return None
    ip = frame[14:]
    length = struct.unpack("!H", ip[4:6])[0]
    ip = ip[:40 + length]
    if ip[6] == 0:
        return None
    upper, frag, at = ip[6], None, 40
    if ip[6] == 44:
        upper, frag = fragment_of(ip, 40)
        at = 48
    t = ip[at:]
    src, dst = ip[8:24], ip[24:40]
    p = {
        "proto": NAMES.get(upper, str(upper)), "src": text6(src), "dst": text6(dst), "hl": ip[7],
        "tc": struct.unpack("!I", ip[:4])[0] >> 20 & 0xff, "len": 40 + length, "to": frame[:6].hex(":"),
    }
    if frag is None and checksum(src + dst + struct.pack("!II", length, upper) + t) != 0:
        p["bad"] = 1
    if frag:
        p["frag"] = frag
        if frag["off"] or len(t) < 8:
            return p
    if p["proto"] == "icmp":
        p["type"], p["code"] = t[0], t[1]
        if t[0] in (133, 137):
            return None
        if t[0] in (128, 129):
            p["id"], p["n"] = struct.unpack("!HH", t[4:8])
        elif t[0] in (135, 136):
            p["flags"], p["target"] = struct.unpack("!H", t[4:6])[0], text6(t[8:24])
            p["mac"] = t[26:32].hex(":") if len(t) >= 32 else None
        else:
            q = t[8:]
            p["info"] = struct.unpack("!I", t[4:8])[0]
            upper, frag, at = q[6], None, 40
            if upper == 44:
                upper, frag = fragment_of(q, 40)
                at = 48
            about = {"proto": NAMES.get(upper, str(upper)), "src": text6(q[8:24]), "dst": text6(q[24:40])}
            if frag:
                about["frag"] = frag
            if about["proto"] in ("tcp", "udp") and not (frag and frag["off"]):
                about["sport"], about["dport"] = struct.unpack("!HH", q[at:at + 4].ljust(4, b"\0"))
            p["about"] = about
    else:
        p["sport"], p["dport"] = struct.unpack("!HH", t[:4])
    return p


six.read = read


class Fragmenting(Router):
    """Its sockets let datagrams be cut."""

    def __init__(self, commands):
        super().__init__(commands)
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.enter("/run/netns/r")
        for sport in list(self.udp):
            self.udp[sport].close()
            s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            s.bind(("::", sport))
            s.setblocking(False)
            self.udp[sport] = s
        self.enter(own)
        os.close(own)

    def put(self, dev, p):
        if "about" not in p:
            whole, at = body_of(p)
        else:
            head = struct.pack("!IHBB", 6 << 28, p["about"]["len"], 17, 64) + ip6(p["about"]["src"]) + ip6(p["about"]["dst"])
            udp = struct.pack("!HHHH", p["about"]["sport"], p["about"]["dport"], p["about"]["len"], 0)
            whole = struct.pack("!BBHI", p["type"], 0, 0, p["info"]) + head + udp + bytes(1000)
            at = 2
        number = NUMBER.get(p["proto"], 0)
        src, dst = ip6(p["src"]), ip6(p["dst"])
        total = checksum(src + dst + struct.pack("!II", len(whole), number) + whole) or 0xffff
        whole = whole[:at] + struct.pack("!H", total) + whole[at + 2:]
        nexthdr = number
        if "frag" in p:
            f = p["frag"]
            header = struct.pack("!BBHI", number, 0, f["off"] | f["more"], f["id"])
            whole, nexthdr = header + whole[f["off"]:f["off"] + f["len"]], 44
        ip = struct.pack("!IHBB", 6 << 28 | p.get("tc", 0) << 20, len(whole), nexthdr, p["hl"]) + src + dst + whole
        try:
            self.sockets[dev].send(mac(p["to"]) + mac(HOST_MAC) + b"\x86\xdd" + ip)
        except OSError:
            # Longer than the other end takes.
            pass


def setup(r):
    out = ["ip link set lo up"]
    for dev in MACS:
        out.append(f"ip link set {dev} address {MACS[dev]}")
    for dev in MACS:
        if r.random() < 0.5:
            out.append(f"ip link set {dev} mtu {r.choice([1280, 1300, 1400, 1407, 2000])}")
    out.append("sysctl -w net.ipv6.conf.all.forwarding=1")
    for dev in MACS:
        out += [f"ip link set {dev} up", f"ip addr add {OURS[dev]}/64 dev {dev}"]
    for dev, hosts in [("lan0", LAN), ("wan0", WAN)]:
        for host in hosts:
            out.append(f"ip neigh add {host} lladdr {HOST_MAC} dev {dev} nud permanent")
    if r.random() < 0.4:
        out.append(f"ip -6 route add fd00:9::/32 via fd00:2::22 mtu {r.choice([1280, 1350])}")
    out.append("ip -6 route add default via fd00:2::21")
    if r.random() < 0.5:
        out.append(f"sysctl -w net.ipv6.ip6frag_time={r.choice([2, 5])}")
    if r.random() < 0.6:
        if r.random() < 0.5:
            out.append(f"sysctl -w net.netfilter.nf_conntrack_frag6_timeout={r.choice([2, 5])}")
        out.append("nft add table ip6 t")
        for hook in ("input", "forward", "output"):
            out.append(f"nft add chain ip6 t {hook} '{{ type filter hook {hook} priority 0; }}'")
            # Reports of listeners have another header.
            missing = "exthdr frag missing counter" if hook != "output" else "frag id != 1-5 counter"
            rules = r.sample([
                "frag more-fragments 1 counter", "frag more-fragments 0 counter", "frag frag-off 0 counter", "frag frag-off != 0 counter", "frag nexthdr 17 counter",
                "frag id 1-5 counter", "exthdr frag exists counter", missing, "udp dport 5001 counter", "meta l4proto udp counter",
                "ip6 nexthdr 44 counter", "icmpv6 type echo-request counter", "meta length gt 1000 counter", "ip6 length gt 1000 counter",
            ], 4)
            out += [f"nft add rule ip6 t {hook} {rule}" for rule in rules]
        if r.random() < 0.7:
            out.append("nft add rule ip6 t forward ct state new counter")
    return out


def cut(r, p, body, number):
    """A packet's fragments, mostly as they should be."""
    step = r.choice([1232, 1232, 1352, 1448, 600, 8, 40])
    if body > 60 * step:
        step = 1232
    pieces, at = [], 0
    while at < body:
        n = min(step, body - at)
        pieces.append({**p, "frag": {"off": at, "more": int(at + n < body), "id": number, "len": n}})
        at += n
    twist = r.random()
    if twist < 0.35:
        return pieces
    if twist < 0.5:
        r.shuffle(pieces)
    elif twist < 0.6:
        pieces.pop(r.randrange(len(pieces)))
    elif twist < 0.7:
        pieces.insert(r.randrange(len(pieces) + 1), r.choice(pieces))
    else:
        victim = r.randrange(len(pieces))
        f = pieces[victim]["frag"] = dict(pieces[victim]["frag"])
        kind = r.choice(["overlap", "odd", "ecn", "end", "empty", "atomic", "far"])
        if kind == "overlap" and f["off"] >= 8:
            f["off"] -= 8
        elif kind == "odd":
            f["len"] = max(f["len"] - 3, 1)
        elif kind == "ecn":
            pieces[victim]["tc"] = r.choice([0, 1, 2, 3])
        elif kind == "end":
            f["more"] ^= 1
        elif kind == "empty":
            f["len"] = 0
        elif kind == "atomic":
            whole = {**p, "frag": {"off": 0, "more": 0, "id": number, "len": body}}
            return [whole] if body < 1200 else pieces
        elif kind == "far":
            f["off"] = 65528
    return pieces


def packet(r, dev):
    other = "wan0" if dev == "lan0" else "lan0"
    far = ["fd00:9::1", "fd00:a::1"] if dev == "lan0" else []
    dst = r.choice([OURS[dev], OURS[dev], OURS[other], *(WAN if dev == "lan0" else LAN), *far])
    src = r.choice(LAN if dev == "lan0" else WAN)
    p = {"src": src, "dst": dst, "to": MACS[dev], "hl": r.choice([64, 64, 64, 1]), "tc": r.choice([0, 0, 2, 0xb8]), "data": r.choice([100, 500, 1300, 1452, 1453, 2892, 2896, 3000, 4000])}
    if r.random() < 0.5:
        return {**p, "proto": "udp", "sport": 1000, "dport": r.choice([53, 700, 5001])}
    return {**p, "proto": "icmp", "type": 128, "id": 7, "n": r.randint(1, 9)}


def case(seed):
    r = random.Random(seed)
    commands = setup(r)
    router = Fragmenting(commands)
    time.sleep(0.5)
    router.collect()
    steps, number, sent = [], 0, []
    begin, at = time.monotonic(), 1000

    def step(s, gap):
        nonlocal at
        at += gap
        time.sleep(max(0, begin + at / 1000 - time.monotonic()))
        s["at"], s["before"] = at, router.collect()
        if s.get("send"):
            s["errno"] = router.send(s["packet"])
        elif "in" in s:
            router.put(s["in"], s["packet"])
        time.sleep(0.005)
        s["out"] = router.collect()
        steps.append(s)

    for _ in range(r.randint(5, 9)):
        kind = r.random()
        if kind < 0.25:
            dst = r.choice(WAN + LAN + ["fd00:9::1", "fd00:a::1"])
            p = {"proto": "udp", "dst": dst, "sport": r.choice([700, 800]), "dport": 5001, "data": r.choice([10, 1232, 1452, 1453, 2000, 2892, 2896, 3000, 9000, 65527, 65528])}
            sent.append(p)
            step({"send": True, "packet": p}, 1130)
        elif kind < 0.4 and sent:
            p = r.choice(sent)
            mtu = r.choice([1280, 1296, 1343, 1200])
            src = OURS["lan0"] if p["dst"] in LAN else OURS["wan0"]
            dev = "lan0" if p["dst"] in LAN else "wan0"
            about = {"proto": "udp", "src": src, "dst": p["dst"], "sport": p["sport"], "dport": 5001, "len": 1400}
            step({"in": dev, "packet": {"proto": "icmp", "type": 2, "src": p["dst"], "dst": src, "to": MACS[dev], "hl": 64, "info": mtu, "about": about}}, 1130)
            step({"send": True, "packet": p}, 1130)
        else:
            dev = r.choice(["lan0", "lan0", "wan0"])
            p = packet(r, dev)
            number += 1
            gap = 1130
            for piece in cut(r, p, p["data"] + 8, number):
                step({"in": dev, "packet": piece}, gap)
                gap = 10
    # The longest time, and what a timer of that length is late at most.
    step({}, 75_000)
    rules = sh("ip netns exec r nft list ruleset", check=False)
    counters = [list(map(int, found)) for found in re.findall(r"counter packets (\d+) bytes (\d+)", rules)]
    router.close()
    return {"seed": seed, "setup": commands, "steps": steps, "counters": counters}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    time.sleep(1)
    with open(out, "w") as file:
        for seed in range(first, first + count):
            print(json.dumps(case(seed)), file=file, flush=True)


main()
