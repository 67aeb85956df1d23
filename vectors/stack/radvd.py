#!/usr/bin/env python3
"""Records what radvd 2.19 says on a link, and what it answers.

    radvd.py FIRST COUNT OUT.jsonl

One line for each seed: the file, questions for routers with the time of each (ns from the program's first word on), and the frames it sent. Run it inside the
user-mode kernel, where time is exact (`penstock kernel build`), with radvd 2.19 and iproute2 6.1 in the path. Nothing outside a network namespace of its own is
touched.
"""
import json
import random
import socket
import struct
import subprocess
import sys
import time

MAC = bytes([2, 0, 0, 0, 1, 1])


def sh(command, check=True):
    return subprocess.run(command, shell=True, check=check, capture_output=True, text=True)


def ip6(text):
    return socket.inet_pton(socket.AF_INET6, text)


def onoff(r):
    return r.choice(["on", "off"])


def lines(r, choices):
    return "".join(f" {c};" for c in choices if r.random() < 0.35)


def prefix(r):
    what = r.choice(["2001:db8:1::/64", "2001:db8:2::/64", "fd00:7::/56", "::/64"])
    valid = r.choice([7200, 600, 20, 86400])
    inner = lines(r, [f"AdvOnLink {onoff(r)}", f"AdvAutonomous {onoff(r)}", f"DeprecatePrefix {onoff(r)}"])
    if r.random() < 0.6:
        inner += f" AdvValidLifetime {r.choice([valid, valid, 'infinity'])}; AdvPreferredLifetime {r.choice([valid, valid // 2, 0])};"
    if r.random() < 0.3:
        inner += " DecrementLifetimes on;"
    if r.random() < 0.1:
        inner += " Base6Interface lo;"
    return f"    prefix {what} {{{inner} }};\n"


def config(r):
    most = r.choice(["10", "12", "30", "4; MinRtrAdvInterval 3", "7; MinRtrAdvInterval 3.5"])
    body = lines(r, [
        f"AdvManagedFlag {onoff(r)}", f"AdvOtherConfigFlag {onoff(r)}", f"AdvLinkMTU {r.choice([0, 1280, 1480])}", f"AdvReachableTime {r.choice([0, 30000])}",
        f"AdvRetransTimer {r.choice([0, 1000])}", f"AdvCurHopLimit {r.choice([0, 64, 33])}", f"AdvDefaultLifetime {r.choice([0, 60, 9000])}",
        f"AdvDefaultPreference {r.choice(['low', 'medium', 'high'])}", f"AdvSourceLLAddress {onoff(r)}", f"UnicastOnly {onoff(r)}",
        f"AdvRASolicitedUnicast {onoff(r)}", f"AdvRASolicitedUnicast off", f"AdvIntervalOpt {onoff(r)}"])
    text = f"interface lan0 {{\n    AdvSendAdvert on; MaxRtrAdvInterval {most};{body}\n"
    parts = [prefix(r) for _ in range(r.choice([0, 1, 1, 2, 3]))]
    if r.random() < 0.4:
        parts.append(f"    route 2001:db8:{r.randrange(9)}::/48 {{{lines(r, ['AdvRoutePreference high', 'AdvRouteLifetime 77', 'RemoveRoute off'])} }};\n")
    if r.random() < 0.4:
        parts.append(f"    RDNSS {r.choice(['fd00::1', 'fd00::1 fd00::2', 'fd00::1 fd00::2 fd00::3'])} {{{lines(r, ['AdvRDNSSLifetime 60', 'FlushRDNSS off'])} }};\n")
    if r.random() < 0.4:
        parts.append(f"    DNSSL {r.choice(['lan', 'home.arpa lan', 'a.very.long.domain.example.org'])} {{{lines(r, ['AdvDNSSLLifetime 60', 'FlushDNSSL off'])} }};\n")
    if r.random() < 0.1:
        parts.append("    clients { fe80::9; fe80::a; };\n")
    r.shuffle(parts)
    return text + "".join(parts) + "};\n"


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def question(source):
    icmp = bytes([133, 0, 0, 0]) + bytes(4)
    if source != "::":
        icmp += bytes([1, 1, 2, 0, 0, 0, 2, 9])
    pseudo = ip6(source) + ip6("ff02::2") + struct.pack("!II", len(icmp), 58)
    icmp = icmp[:2] + struct.pack("!H", checksum(pseudo + icmp)) + icmp[4:]
    head = struct.pack("!IHBB", 6 << 28, len(icmp), 58, 255) + ip6(source) + ip6("ff02::2")
    return bytes([0x33, 0x33, 0, 0, 0, 2, 2, 0, 0, 0, 2, 9]) + b"\x86\xdd" + head + icmp


def record(seed):
    r = random.Random(seed)
    sh("ip netns del r", check=False)
    sh("ip netns add r && ip link add lan0 netns r type veth peer name wire0")
    quiet = " ".join(f"net.ipv6.conf.{d}.accept_dad=0" for d in ("all", "default", "lan0"))
    sh(f"ip netns exec r sysctl -qw {quiet} net.ipv6.conf.all.forwarding={r.choice([1, 1, 1, 1])}")
    sh("sysctl -qw net.ipv6.conf.wire0.disable_ipv6=1 && ip link set wire0 up")
    for c in ["ip link set lo up", "ip link set lan0 address 02:00:00:00:01:01", "ip link set lan0 up", "ip addr add 2001:db8:5::1/64 dev lan0",
              "ip addr add 2001:db8:6::1/48 dev lo"]:
        sh("ip netns exec r " + c)
    # The addresses are there, and known to be, before anybody speaks.
    time.sleep(3)
    text = config(r)
    path = f"/tmp/radvd-{seed}.conf"
    with open(path, "w") as f:
        f.write(text)
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x86dd))
    wire.bind(("wire0", 0x86dd))
    wire.settimeout(0.002)
    program = subprocess.Popen(["ip", "netns", "exec", "r", "radvd", "-n", "-C", path, "-p", f"/tmp/radvd-{seed}.pid"], stderr=subprocess.DEVNULL)
    begin = None
    time.sleep(0.02)
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    ends = 45 * 10**9
    asks = sorted((r.randrange(2 * 10**9, 40 * 10**9), r.choice(["fe80::9", "fe80::9", "::"])) for _ in range(r.choice([0, 1, 2, 4])))
    heard, asked, stopped = [], [], False
    while True:
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin
        if now > ends + 10**9:
            break
        if now > ends and not stopped:
            sh("pkill radvd", check=False)
            stopped = True
        if asks and asks[0][0] <= now:
            data = question(asks.pop(0)[1])
            wire.send(data)
            asked.append({"at": now, "frame": data.hex()})
        try:
            data = wire.recv(4000)
        except (BlockingIOError, socket.timeout):
            continue
        at = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin
        # Whoever is answered alone is looked for first.
        if data[54] == 135 and data[6:12] == MAC:
            target = data[62:78]
            icmp = bytes([136, 0, 0, 0, 0x60, 0, 0, 0]) + target + bytes([2, 1, 2, 0, 0, 0, 2, 9])
            src = data[22:38]
            pseudo = target + src + struct.pack("!II", len(icmp), 58)
            icmp = icmp[:2] + struct.pack("!H", checksum(pseudo + icmp)) + icmp[4:]
            wire.send(MAC + bytes([2, 0, 0, 0, 2, 9]) + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(icmp), 58, 255) + target + src + icmp)
        if data[54] == 134 and data[6:12] == MAC:
            heard.append({"at": at, "frame": data.hex()})
    program.wait()
    forwards = sh("ip netns exec r sysctl -n net.ipv6.conf.all.forwarding").stdout.strip()
    own = sh("ip netns exec r sysctl net.ipv6.conf.lan0.hop_limit net.ipv6.conf.lan0.mtu net.ipv6.neigh.lan0.retrans_time_ms net.ipv6.neigh.lan0.base_reachable_time_ms").stdout
    wire.close()
    sh("ip link del wire0")
    return {"seed": seed, "conf": text, "forwarding": int(forwards), "asked": asked, "heard": heard, "own": own}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(out, "w") as f:
        for seed in range(first, first + count):
            f.write(json.dumps(record(seed)) + "\n")


main()
