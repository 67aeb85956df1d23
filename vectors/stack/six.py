#!/usr/bin/env python3
"""Records what a real router does with packets of IPv6: neighbour discovery, forwarding, errors, what it sends itself.

    six.py FIRST COUNT OUT.jsonl

One line for each seed, but for those in which the router cuts a packet: the commands, what is put on the router's wires or sent by itself, and what came out
of it: before each step (timers), and after it. Run it inside the user-mode kernel, where time is exact (`penstock kernel build`). Nothing outside two network
namespaces of its own is touched.
"""
import ctypes
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time

MACS = {"lan0": "02:00:00:00:01:01", "wan0": "02:00:00:00:01:02"}
OURS = {"lan0": "fd00:1::1", "wan0": "fd00:2::1"}
LINK = {"lan0": "fe80::ff:fe00:101", "wan0": "fe80::ff:fe00:102"}
HOST_MAC = "02:00:00:00:00:99"
# Hosts of each wire: those that are in the table, those that answer, those that do not.
HOSTS = {
    "lan0": ["fd00:1::11", "fd00:1::12", "fd00:1::66"],
    "wan0": ["fd00:2::21", "fd00:2::fe", "fd00:2::66"],
}
SILENT = ["fd00:1::66", "fd00:2::66"]
FAR = ["fd00:9::1", "fd00:9:1::1", "fd00:a::1", "fd00:b::1", "fd00:c::1", "fd00:d::1", "2001:db8::1"]


def sh(command, check=True):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ip6(text):
    return socket.inet_pton(socket.AF_INET6, text)


def text6(data):
    return socket.inet_ntop(socket.AF_INET6, data)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16}
NUMBER = {"icmp": 58, "tcp": 6, "udp": 17}


def body_of(p):
    data = bytes(p.get("data", 0))
    if p["proto"] == "udp":
        return struct.pack("!HHHH", p["sport"], p["dport"], 8 + len(data), 0) + data, 6
    if p["proto"] == "tcp":
        flags = sum(FLAGS[f] for f in p["flags"])
        return struct.pack("!HHIIBBHHH", p["sport"], p["dport"], p["seq"], p["ack"], 0x50, flags, 8000, 0, 0) + data, 16
    if p["type"] in (135, 136):
        option = bytes([1 if p["type"] == 135 else 2, 1]) + mac(p["mac"]) if p.get("mac") else b""
        return struct.pack("!BBHHH", p["type"], 0, 0, p.get("flags", 0), 0) + ip6(p["target"]) + option, 2
    return struct.pack("!BBHHH", p["type"], 0, 0, p["id"], p["n"]) + data, 2


def ip_packet(p):
    body, at = body_of(p)
    src, dst = ip6(p["src"]), ip6(p["dst"])
    number = NUMBER[p["proto"]]
    total = checksum(src + dst + struct.pack("!II", len(body), number) + body) or 0xffff
    body = body[:at] + struct.pack("!H", total) + body[at + 2:]
    return struct.pack("!IHBB", 6 << 28 | p.get("tc", 0) << 20, len(body), number, p["hl"]) + src + dst + body


def read(frame):
    """A frame as a test compares it; None: not IPv6, or of those that are left out (listeners' reports, solicitations of routers, redirects)."""
    if frame[12:14] != b"\x86\xdd":
        return None
    ip = frame[14:]
    length = struct.unpack("!H", ip[4:6])[0]
    ip = ip[:40 + length]
    if ip[6] == 0:
        return None
    if ip[6] == 44:
        raise Cut
    t, src, dst = ip[40:], ip[8:24], ip[24:40]
    right = checksum(src + dst + struct.pack("!II", length, ip[6]) + t) == 0
    if not right:
        raise SystemExit(f"a checksum is wrong: {frame.hex()}")
    names = {58: "icmp", 6: "tcp", 17: "udp"}
    p = {
        "proto": names.get(ip[6], str(ip[6])), "src": text6(src), "dst": text6(dst), "hl": ip[7],
        "tc": struct.unpack("!I", ip[:4])[0] >> 20 & 0xff, "len": 40 + length, "to": frame[:6].hex(":"),
    }
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
            about = {"proto": names.get(q[6], str(q[6])), "src": text6(q[8:24]), "dst": text6(q[24:40])}
            if about["proto"] in ("tcp", "udp"):
                about["sport"], about["dport"] = struct.unpack("!HH", q[40:44])
            p["about"] = about
    else:
        p["sport"], p["dport"] = struct.unpack("!HH", t[:4])
        if p["proto"] == "tcp":
            p["seq"], p["ack"] = struct.unpack("!II", t[4:12])
            p["flags"] = "".join(f for f, bit in FLAGS.items() if t[13] & bit)
    return p


class Cut(Exception):
    """The router has cut a packet into fragments, which is not simulated."""


class Router:
    """The router in namespace r, the other ends of its wires in namespace w, with a socket on each."""

    def __init__(self, commands):
        sh("ip netns del r; ip netns del w", check=False)
        sh("ip netns add r; ip netns add w")
        quiet = " ".join(f"net.ipv6.conf.{c}.{k}=0" for c in ("all", "default") for k in ("accept_dad", "accept_ra", "router_solicitations"))
        sh(f"ip netns exec r sysctl -qw {quiet}; ip netns exec w sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        for dev in MACS:
            sh(f"ip link add {dev} netns r type veth peer name {dev} netns w")
            sh(f"ip netns exec r sysctl -qw net.ipv6.conf.{dev}.accept_dad=0")
            sh(f"ip -n w link set {dev} address {HOST_MAC} arp off; ip -n w link set {dev} mtu 9000 up; ip netns exec w ethtool -K {dev} tx off", check=False)
            sh(f"ip netns exec r ethtool -K {dev} tx off", check=False)
        for command in commands:
            sh("ip netns exec r " + command)
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.sockets = {}
        self.enter("/run/netns/w")
        for dev in MACS:
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            s.bind((dev, 0))
            s.setblocking(False)
            self.sockets[dev] = s
        self.enter("/run/netns/r")
        self.udp = {}
        for sport in (700, 800):
            s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            s.setsockopt(socket.IPPROTO_IPV6, 62, 1)  # IPV6_DONTFRAG
            s.bind(("::", sport))
            s.setblocking(False)
            self.udp[sport] = s
        self.enter(own)
        os.close(own)

    @staticmethod
    def enter(where):
        fd = where if isinstance(where, int) else os.open(where, os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) != 0:
            raise SystemExit("setns")
        if fd is not where:
            os.close(fd)

    def close(self):
        for s in [*self.sockets.values(), *self.udp.values()]:
            s.close()

    def collect(self):
        seen = []
        for dev in MACS:
            while True:
                try:
                    frame, where = self.sockets[dev].recvfrom(65536)
                except BlockingIOError:
                    break
                if where[2] != socket.PACKET_OUTGOING and (p := read(frame)):
                    seen.append((dev, p))
        return seen

    def put(self, dev, p):
        frame = mac(p["to"]) + mac(HOST_MAC) + b"\x86\xdd" + ip_packet(p)
        try:
            self.sockets[dev].send(frame)
        except OSError:
            # Longer than the other end takes.
            pass

    def send(self, p):
        try:
            self.udp[p["sport"]].sendto(bytes(p["data"]), (p["dst"], p["dport"]))
        except OSError as e:
            return e.errno
        return 0


def setup(r):
    out = ["ip link set lo up"]
    for dev in MACS:
        out.append(f"ip link set {dev} address {MACS[dev]}")
    small = r.choice([None, None, "lan0", "wan0"])
    if small:
        out.append(f"ip link set {small} mtu {r.choice([1280, 1400])}")
    if r.random() < 0.9:
        out.append("sysctl -w net.ipv6.conf.all.forwarding=1")
    for dev in MACS:
        out += [f"ip link set {dev} up", f"ip addr add {OURS[dev]}/64 dev {dev}"]
        if r.random() < 0.2:
            out.append(f"ip addr add fd00:{dev[0] == 'l' and 1 or 2}::5/{r.choice([64, 128])} dev {dev}")
    for dev, host in [("lan0", "fd00:1::11"), ("wan0", "fd00:2::21")]:
        if r.random() < 0.5:
            out.append(f"ip neigh add {host} lladdr {HOST_MAC} dev {dev} nud permanent")
    routes = [
        "ip -6 route add fd00:9::/32 via fd00:2::fe",
        "ip -6 route add fd00:9:1::/48 via fd00:2::21",
        "ip -6 route add fd00:a::/32 via fd00:2::66",
        "ip -6 route add unreachable fd00:b::/32",
        "ip -6 route add prohibit fd00:c::/32",
        "ip -6 route add blackhole fd00:d::/32",
        "ip -6 route add fd00:9::/32 via fd00:2::21 metric 100",
        "ip -6 route add fd00:e::/32 dev wan0",
        "ip -6 route add fd00:9::1/128 via fd00:2::fe hoplimit 33 mtu 1300",
        "ip -6 route add default via fd00:2::fe",
    ]
    return out + r.sample(routes, r.randint(2, 8))


def packet(r, dev, src=None):
    other = "wan0" if dev == "lan0" else "lan0"
    # Not back where it came from: that would be told by a redirect.
    far = FAR + ["fd00:e::1"] if dev == "lan0" else []
    dst = r.choice(HOSTS[other] + HOSTS[other] + far + [OURS[dev], OURS[other], LINK[dev], "ff02::1", "fd00:1::"])
    src = src or r.choice(HOSTS[dev][:2] * 6 + ["fe80::99", "2001:db8:7::7", "::", OURS[other]])
    to = MACS[dev]
    if dst == "ff02::1":
        to = "33:33:00:00:00:01"
    p = {"src": src, "dst": dst, "to": to, "hl": r.choice([1, 2, 64, 64, 64]), "tc": r.choice([0, 0, 0xb8, 1]), "data": r.choice([0, 8, 100, 1240, 1400, 1450])}
    kind = r.random()
    if kind < 0.4:
        return {**p, "proto": "udp", "sport": r.choice([1000, 2000]), "dport": r.choice([53, 700, 5001])}
    if kind < 0.7:
        return {**p, "proto": "icmp", "type": 128, "id": r.choice([1, 2]), "n": r.randint(1, 9)}
    return {**p, "proto": "tcp", "data": 0, "sport": 3000, "dport": r.choice([80, 22]), "seq": 1000, "ack": 7, "flags": r.choice(["S", "A", "R", "FA"])}


def solicited_node(addr):
    last = ip6(addr)[13:]
    return text6(ip6("ff02::1:ff00:0")[:13] + last), "33:33:ff:" + last.hex(":")


def solicitation(r, dev):
    target = r.choice([OURS[dev], OURS[dev], LINK[dev], HOSTS[dev][0], OURS["wan0" if dev == "lan0" else "lan0"], "fd00:1::"])
    src = r.choice(HOSTS[dev][:2] + ["fe80::99", "::"])
    # An address that routers share is answered for after a random time; another's would be forwarded.
    shared, others = target == "fd00:1::", target not in (OURS[dev], LINK[dev], "fd00:1::")
    if shared and src == "::":
        src = "fe80::99"
    dst, to = (target, MACS[dev]) if shared or not others and src != "::" and r.random() < 0.4 else solicited_node(target)
    own = HOST_MAC if src != "::" and r.random() < 0.8 else None
    return {"proto": "icmp", "type": 135, "src": src, "dst": dst, "to": to, "hl": r.choice([255, 255, 255, 254]), "target": target, "mac": own}


def answers(r, s):
    """Advertisements for what was asked for in a step, of those that answer."""
    for dev, p in s["before"] + s["out"]:
        if p.get("type") == 135 and p["target"] not in SILENT and not p["target"].startswith("fe80::ff:fe00:1"):
            flags = r.choice([0x6000, 0x6000, 0x4000, 0xe000])
            yield dev, {"proto": "icmp", "type": 136, "src": p["target"], "dst": p["src"], "to": MACS[dev], "hl": 255, "flags": flags, "target": p["target"], "mac": HOST_MAC}


def case(seed):
    r = random.Random(seed)
    commands = setup(r)
    router = Router(commands)
    time.sleep(0.5)
    router.collect()
    steps, waiting = [], []
    begin, at = time.monotonic(), 1000
    for _ in range(r.randint(8, 14)):
        at += 1130
        if waiting and r.random() < 0.85:
            dev, p = waiting.pop(0)
            s = {"in": dev, "packet": p}
            at -= 830
        elif r.random() < 0.2:
            dst = r.choice(HOSTS["lan0"] + HOSTS["wan0"] + FAR + [OURS["lan0"], "::1"])
            s = {"send": True, "packet": {"proto": "udp", "dst": dst, "sport": r.choice([700, 800]), "dport": 5001, "data": r.choice([10, 1240, 1352, 1452, 1453])}}
        else:
            dev = r.choice(["lan0", "lan0", "wan0"])
            s = {"in": dev, "packet": solicitation(r, dev) if r.random() < 0.2 else packet(r, dev)}
        time.sleep(max(0, begin + at / 1000 - time.monotonic()))
        s["at"], s["before"] = at, router.collect()
        if s.get("send"):
            s["errno"] = router.send(s["packet"])
        else:
            router.put(s["in"], s["packet"])
        time.sleep(0.2)
        s["out"] = router.collect()
        waiting += answers(r, s)
        steps.append(s)
    router.close()
    return {"seed": seed, "setup": commands, "steps": steps}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    time.sleep(1)
    with open(out, "w") as file:
        for seed in range(first, first + count):
            try:
                print(json.dumps(case(seed)), file=file, flush=True)
            except Cut:
                pass


if __name__ == "__main__":
    main()
