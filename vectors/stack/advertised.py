#!/usr/bin/env python3
"""Records what a real machine makes of advertisements of routers (RFC 4861, RFC 4862, RFC 4191).

    advertised.py FIRST COUNT OUT.jsonl

One line for each seed: frames that the machine hears and commands, with the time of each (the kernel's monotonic clock, ns), and what `ip` and `sysctl` show in
between; and the frames that it sends to ask for routers. Run it inside the user-mode kernel, where time is exact (`penstock kernel build`), with iproute2 6.1 in
the path. Nothing outside a network namespace of its own is touched.
"""
import json
import random
import socket
import struct
import subprocess
import sys
import time

MAC = "02:00:00:00:01:01"
OWN = "fe80::ff:fe00:101"
CONF = "net.ipv6.conf.lan0."
SHOWN = ["ip -6 addr show dev lan0", "ip -6 addr show dev lan0", "ip -6 route", "ip -6 route", "ip -j -6 route", "ip -6 neigh show dev lan0",
         "ip -j -6 neigh show dev lan0", "ip -6 route get 2001:db8:9::1", "ip -6 route get fd77:1::1",
         "sysctl net.ipv6.conf.lan0.hop_limit net.ipv6.conf.lan0.mtu net.ipv6.conf.all.forwarding net.ipv6.conf.lan0.forwarding",
         "sysctl net.ipv6.neigh.lan0.retrans_time_ms net.ipv6.neigh.lan0.base_reachable_time_ms net.ipv6.neigh.lan0.gc_stale_time"]
PREFIXES = ["2001:db8:1::", "2001:db8:1::", "2001:db8:2::", "fd77:1::", "fe80::", "ff05::", "2001:db8:1:0:5::"]
LIFE = [0, 1, 4, 9, 30, 150, 3600, 7199, 7200, 7201, 86400, 2**32 - 2, 2**32 - 1]


def sh(command, check=True):
    return subprocess.run(command, shell=True, check=check, capture_output=True, text=True)


def ip6(text):
    return socket.inet_pton(socket.AF_INET6, text)


def option(kind, body):
    body += bytes(-(len(body) + 2) % 8)
    return bytes([kind, (len(body) + 2) // 8]) + body


def prefix(r):
    valid = r.choice(LIFE)
    preferred = r.choice([0, valid, valid // 2, min(valid + 1, 2**32 - 1), r.choice(LIFE)])
    if r.random() < 0.8:
        preferred = min(preferred, valid)
    flags = r.choice([0xc0, 0xc0, 0xc0, 0xc0, 0x80, 0x40, 0x00, 0xd0])
    length = r.choice([64, 64, 64, 64, 64, 56, 80, 128, 0])
    return option(3, struct.pack("!BBIII", length, flags, valid, preferred, 0) + ip6(r.choice(PREFIXES)))


def route(r):
    length = r.choice([0, 32, 48, 64, 64, 96, 129])
    size = r.choice([1, 2, 3, 3]) if length else r.choice([1, 3])
    flags = r.choice([0x00, 0x08, 0x18, 0x10])
    body = struct.pack("!BBI", length, flags, r.choice(LIFE)) + ip6(r.choice(["fd77::", "2001:db8:9::"]))[: (size - 1) * 8]
    return bytes([24, size]) + body


def advertisement(r, who):
    life = r.choice([0, 1, 5, 30, 600, 1800, 1800, 1800, 9000, 65535])
    flags = r.choice([0, 0, 0, 0x80, 0x40, 0xc0]) | r.choice([0, 0, 0, 0x08, 0x18, 0x10])
    times = (r.choice([0, 0, 0, 30000, 5000, 50, 2**32 - 1]), r.choice([0, 0, 0, 1000, 5, 400]))
    body = struct.pack("!BBHII", r.choice([64, 64, 0, 1, 37, 255]), flags, life, *times)
    options = []
    if r.random() < 0.85:
        options.append(option(1, bytes([2, 0, 0, 0, 2, who])))
    for _ in range(r.choice([0, 1, 1, 1, 2, 3])):
        options.append(prefix(r))
    if r.random() < 0.3:
        options.append(option(5, struct.pack("!HI", 0, r.choice([1280, 1400, 1500, 1499, 1279, 9000, 0]))))
    for _ in range(r.choice([0, 0, 0, 1, 2])):
        options.append(route(r))
    if r.random() < 0.1:
        options.append(option(25, struct.pack("!HI", 0, 600) + ip6("2001:db8::53")))
    if r.random() < 0.05:
        options.append(option(r.choice([2, 4, 38, 200]), bytes(r.choice([6, 14]))))
    r.shuffle(options)
    if r.random() < 0.03:
        options.append(r.choice([bytes([3, 0, 0, 0]), bytes([3, 9, 1, 2]), bytes([1]), option(1, bytes(14)), option(3, bytes(6)), option(5, bytes(14))]))
    return body + b"".join(options)


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frame(r, kind, body, who):
    source = f"fe80::{who}"
    to = r.choice(["ff02::1"] * 6 + [OWN])
    hop = 255
    code = 0
    if r.random() < 0.05:
        which = r.randrange(4)
        hop = 254 if which == 0 else hop
        code = 1 if which == 1 else code
        source = "2001:db8:1::77" if which == 2 else OWN if which == 3 else source
    icmp = bytes([kind, code, 0, 0]) + body
    icmp += bytes(len(icmp) % 2)
    pseudo = ip6(source) + ip6(to) + struct.pack("!II", len(icmp), 58)
    icmp = icmp[:2] + struct.pack("!H", checksum(pseudo + icmp)) + icmp[4:]
    head = struct.pack("!IHBB", 6 << 28, len(icmp), 58, hop) + ip6(source) + ip6(to)
    mac = bytes([0x33, 0x33, 0, 0, 0, 1]) if to == "ff02::1" else bytes([2, 0, 0, 0, 1, 1])
    return mac + bytes([2, 0, 0, 0, 2, who]) + b"\x86\xdd" + head + icmp


def message(r):
    who = r.choice([1, 1, 1, 2, 3])
    if r.random() < 0.06:
        # One that answers without being asked, with a flag that says whether it is a router.
        flags = r.choice([0x20, 0xa0, 0x00, 0x80, 0x60, 0xe0])
        return frame(r, 136, struct.pack("!I", flags << 24) + ip6(f"fe80::{who}") + option(2, bytes([2, 0, 0, 0, 2, who])), who)
    if r.random() < 0.05:
        return frame(r, 133, bytes(4) + (option(1, bytes([2, 0, 0, 0, 2, who])) if r.random() < 0.7 else b""), who)
    return frame(r, 134, advertisement(r, who), who)


def command(r):
    kind = r.random()
    if kind < 0.6:
        name, values = r.choice([
            ("accept_ra", [0, 1, 2]), ("accept_ra", [1, 2]), ("accept_ra_defrtr", [0, 1]), ("accept_ra_pinfo", [0, 1]),
            ("accept_ra_rtr_pref", [0, 1]), ("accept_ra_mtu", [0, 1]), ("accept_ra_min_hop_limit", [1, 40, 256]),
            ("accept_ra_min_lft", [0, 20, 2000]), ("accept_ra_rt_info_max_plen", [0, 48, 64, 128]), ("accept_ra_rt_info_min_plen", [0, 40]),
            ("ra_defrtr_metric", [1024, 512, 2000, 0]), ("autoconf", [0, 1]), ("accept_ra_from_local", [0, 1]), ("forwarding", [0, 1]),
            ("hop_limit", [1, 64, 200]), ("mtu", [1280, 1450, 1500, 1279, 9000]), ("max_addresses", [0, 2, 16]), ("ra_honor_pio_life", [0, 1]),
            ("ra_honor_pio_pflag", [0, 1])])
        return f"sysctl -w {CONF}{name}={r.choice(values)}"
    return r.choice([
        "ip link set lan0 down", "ip link set lan0 up", "ip link set lan0 up", f"ip link set lan0 mtu {r.choice([1500, 1400, 1280, 1200, 9000])}",
        "ip -6 route del default", "ip -6 route add default via fe80::1 dev lan0", "ip -6 route add default via fe80::2 dev lan0 metric 1024 pref high",
        "ip -6 route add 2001:db8:1::/64 dev lan0", "ip -6 route del 2001:db8:1::/64 dev lan0", "ip -6 addr add 2001:db8:1::5/64 dev lan0",
        "ip -6 addr del 2001:db8:1:0:0:ff:fe00:101/64 dev lan0", "ip -6 addr add 2001:db8:1:0:0:ff:fe00:101/64 dev lan0", "ip -6 addr add 2001:db8:2::5/64 dev lan0 valid_lft 50 preferred_lft 20",
        "ip -6 neigh flush dev lan0", f"sysctl -w net.ipv6.conf.all.forwarding={r.choice([0, 1])}", "ip token set ::7 dev lan0", "ip token set :: dev lan0"])


def drain(wire, asked):
    while True:
        try:
            data = wire.recv(2000)
        except BlockingIOError:
            return
        if len(data) > 54 and data[12:14] == b"\x86\xdd" and data[20] == 58 and data[54] == 133 and data[6:12] == bytes([2, 0, 0, 0, 1, 1]):
            asked.append({"at": time.clock_gettime_ns(time.CLOCK_MONOTONIC), "frame": data.hex()})


def record(seed):
    r = random.Random(seed)
    sh("ip netns del r", check=False)
    sh("ip netns add r && ip link add lan0 netns r type veth peer name wire0")
    quiet = " ".join(f"net.ipv6.conf.{d}.accept_dad=0" for d in ("all", "default", "lan0"))
    sh(f"ip netns exec r sysctl -qw {quiet}")
    sh("sysctl -qw net.ipv6.conf.wire0.disable_ipv6=1 && ip link set wire0 up")
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x86dd))
    wire.bind(("wire0", 0x86dd))
    wire.setblocking(False)
    # A command is not to begin in one tick and to end in the next.
    def calm():
        while time.clock_gettime_ns(time.CLOCK_MONOTONIC) % 10_000_000 > 5_000_000:
            time.sleep(0.002)
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for c in ["ip link set lo up", f"ip link set lan0 address {MAC}"]:
        sh("ip netns exec r " + c)
    steps, asked = [], []
    steps.append({"at": calm(), "run": "ip link set lan0 up", "err": "", "status": sh("ip netns exec r ip link set lan0 up").returncode})
    for _ in range(r.randrange(15, 45)):
        time.sleep(r.choice([0.004, 0.004, 0.3, 1.0, 2.7, 5.015, 11.37, 31.2]) * r.choice([1, 1, 1, 3]))
        at = calm()
        drain(wire, asked)
        kind = r.random()
        if kind < 0.45:
            data = message(r)
            try:
                wire.send(data)
            except OSError:
                continue
            steps.append({"at": at, "frame": data.hex()})
        elif kind < 0.62:
            c = command(r)
            done = sh("ip netns exec r " + c, check=False)
            steps.append({"at": at, "run": c, "err": done.stderr, "status": done.returncode})
        else:
            shown = SHOWN[r.randrange(len(SHOWN))]
            steps.append({"at": at, "run": shown, "out": sh("ip netns exec r " + shown, check=False).stdout})
    drain(wire, asked)
    wire.close()
    sh("ip link del wire0")
    return {"seed": seed, "steps": steps, "asked": asked}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(out, "w") as f:
        for seed in range(first, first + count):
            f.write(json.dumps(record(seed)) + "\n")


main()
