#!/usr/bin/env python3
"""Records what a real router does to packets of IPv6 whose addresses it translates.

    nat6.py FIRST COUNT OUT.jsonl

One line for each seed, as `record.py` writes them for IPv4: the commands, the packets that are put on the router's wires or sent by itself, what came out of it
after each, and its table of connections. Run it inside the user-mode kernel, where time is exact (`penstock kernel build`), with iptables, nft and ip in the
path. Nothing outside two network namespaces of its own is touched. Seed 66 is left out of `nat6.jsonl`: a connection that has run out still lends its source
address to a new one there, until the kernel's worker has come by (`find_appropriate_src`); here it is forgotten at once.
"""
import ctypes
import fcntl
import json
import os
import random
import socket
import struct
import sys
import time

from six import FLAGS, HOST_MAC, NUMBER, checksum, ip6, mac, sh, text6
from six import Router as Six

PORTS = {"lan0": "fd00:1::1/64", "wan0": "2001:db8:2::1/64", "dmz0": "fd00:3::1/64"}
MACS = {"lan0": "02:00:00:00:01:01", "wan0": "02:00:00:00:01:02", "dmz0": "02:00:00:00:01:03"}
LAN = ["fd00:1::11", "fd00:1::12", "fd00:1::13"]
DMZ = ["fd00:3::10", "fd00:3::11"]
NET = ["2001:db8:9::7", "2001:db8:a::9", "2001:db8:2::100"]
NEIGHBOURS = {"lan0": LAN, "dmz0": DMZ, "wan0": ["2001:db8:2::fe", "2001:db8:2::100"]}
NAMES = {58: "icmp", 6: "tcp", 17: "udp"}


def body_of(p):
    """The bytes behind the IPv6 header, and where their checksum stands."""
    data = bytes(p.get("data", 0))
    if p["proto"] == "udp":
        return struct.pack("!HHHH", p["sport"], p["dport"], 8 + len(data), 0) + data, 6
    if p["proto"] == "tcp":
        flags = sum(FLAGS[f] for f in p["flags"])
        return struct.pack("!HHIIBBHHH", p["sport"], p["dport"], p["seq"], p["ack"], 0x50, flags, 8000, 0, 0) + data, 16
    if "quote" in p:
        return struct.pack("!BBHI", p["type"], p["code"], 0, p.get("mtu", 0)) + p["quote"], 2
    return struct.pack("!BBHHH", p["type"], p["code"], 0, p["id"], p["n"]) + data, 2


def ip_packet(p):
    body, at = body_of(p)
    src, dst, number = ip6(p["src"]), ip6(p["dst"]), NUMBER[p["proto"]]
    total = checksum(src + dst + struct.pack("!II", len(body), number) + body) or 0xffff
    body = body[:at] + struct.pack("!H", total) + body[at + 2:]
    return struct.pack("!IHBB", 6 << 28 | p.get("tos", 0) << 20, len(body), number, p.get("ttl", 64)) + src + dst + body


def fragments(whole, size, ident):
    """The same packet in fragments of so many bytes of payload."""
    body = whole[40:]
    out = []
    for at in range(0, len(body), size):
        piece = body[at:at + size]
        more = 1 if at + size < len(body) else 0
        head = whole[:4] + struct.pack("!HB", 8 + len(piece), 44) + whole[7:40]
        out.append(head + struct.pack("!BBHI", whole[6], 0, at | more, ident) + piece)
    return out


def read(frame):
    """A frame as a test compares it; None: not IPv6, or neighbours', routers' and listeners' words."""
    if frame[12:14] != b"\x86\xdd":
        return None
    ip = frame[14:]
    ip = ip[:40 + struct.unpack("!H", ip[4:6])[0]]
    if ip[6] == 0:
        return None
    number, t, src, dst = ip[6], ip[40:], ip[8:24], ip[24:40]
    p = {"proto": "", "src": text6(src), "dst": text6(dst), "ttl": ip[7], "tos": struct.unpack("!I", ip[:4])[0] >> 20 & 0xff, "len": len(ip)}
    if number == 44:
        number, off = t[0], struct.unpack("!H", t[2:4])[0]
        p["frag"] = off >> 3 | (off & 1) << 13
        t = t[8:]
    p["proto"] = NAMES.get(number, str(number))
    if "frag" not in p and checksum(src + dst + struct.pack("!II", len(t), number) + t) != 0:
        raise SystemExit(f"a checksum is wrong: {frame.hex()}")
    if p.get("frag", 0) & 0x1fff:
        return p
    if p["proto"] == "icmp":
        p["type"], p["code"] = t[0], t[1]
        if 130 <= t[0]:
            return None
        if t[0] >= 128:
            p["id"], p["n"] = struct.unpack("!HH", t[4:8])
        else:
            q = t[8:]
            number, inner = (q[40], q[48:]) if q[6] == 44 else (q[6], q[40:])
            about = {"proto": NAMES.get(number, str(number)), "src": text6(q[8:24]), "dst": text6(q[24:40])}
            if about["proto"] == "icmp":
                about["id"] = struct.unpack("!H", inner[4:6])[0]
            else:
                about["sport"], about["dport"] = struct.unpack("!HH", inner[:4])
            p["about"] = about
    else:
        p["sport"], p["dport"] = struct.unpack("!HH", t[:4])
        if p["proto"] == "tcp":
            p["seq"], p["ack"] = struct.unpack("!II", t[4:12])
            p["flags"] = "".join(f for f, bit in FLAGS.items() if t[13] & bit)
    return p


def checksums_off(dev):
    """Checksums are the machine's to compute, as by `ethtool -K DEV tx off`."""
    value = ctypes.create_string_buffer(struct.pack("II", 0x17, 0))  # ETHTOOL_STXCSUM
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8946, struct.pack("16sP", dev.encode(), ctypes.addressof(value)))  # SIOCETHTOOL


class Router:
    """The router in namespace r, the other ends of its wires in namespace w, with a socket on each."""

    def __init__(self, commands):
        sh("ip netns del r; ip netns del w", check=False)
        sh("ip netns add r; ip netns add w")
        quiet = " ".join(f"net.ipv6.conf.{c}.{k}=0" for c in ("all", "default") for k in ("accept_dad", "accept_ra", "router_solicitations"))
        sh(f"ip netns exec r sysctl -qw {quiet}; ip netns exec w sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        for dev in PORTS:
            sh(f"ip link add {dev} netns r type veth peer name {dev} netns w")
            sh(f"ip netns exec r sysctl -qw net.ipv6.conf.{dev}.accept_dad=0")
            sh(f"ip -n w link set {dev} address {HOST_MAC} arp off; ip -n w link set {dev} up")
        for command in commands:
            sh("ip netns exec r " + command.replace("ip6tables ", "ip6tables-legacy "))
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.sockets = {}
        Six.enter("/run/netns/w")
        for dev in PORTS:
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            s.bind((dev, 0))
            s.setblocking(False)
            self.sockets[dev] = s
        Six.enter("/run/netns/r")
        for dev in PORTS:
            checksums_off(dev)
        self.raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)
        Six.enter(own)
        os.close(own)

    def close(self):
        for s in [*self.sockets.values(), self.raw]:
            s.close()

    def collect(self):
        time.sleep(0.2)
        seen = []
        for dev in PORTS:
            while True:
                try:
                    frame, where = self.sockets[dev].recvfrom(65536)
                except BlockingIOError:
                    break
                if where[2] != socket.PACKET_OUTGOING and (p := read(frame)):
                    seen.append((dev, p, frame))
        return seen

    def put(self, dev, ip):
        try:
            self.sockets[dev].send(mac(MACS[dev]) + mac(HOST_MAC) + b"\x86\xdd" + ip)
        except OSError:
            # Longer than the other end takes.
            pass

    def send(self, p):
        try:
            self.raw.sendto(ip_packet(p), (p["dst"], 0))
        except OSError:
            pass


def rules(r):
    """Random rules of translation, ip6tables' or nft's."""
    t = "ip6tables -t nat -A"
    source = [
        f"{t} POSTROUTING -o wan0 -j MASQUERADE",
        f"{t} POSTROUTING -o wan0 -p udp -j MASQUERADE --to-ports 3000-3003",
        f"{t} POSTROUTING -o wan0 -p tcp -j MASQUERADE --to-ports 3000-3100",
        f"{t} POSTROUTING -s fd00:1::/64 -o wan0 -j SNAT --to-source 2001:db8:2::5",
        f"{t} POSTROUTING -s fd00:1::/64 -o wan0 -j SNAT --to-source 2001:db8:2::5-2001:db8:2::8",
        f"{t} POSTROUTING -s fd00:1::/64 -o wan0 -j SNAT --to-source 2001:db8:2::5-2001:db8:2::8 --persistent",
        f"{t} POSTROUTING -s fd00:1::/64 -o wan0 -j SNAT --to-source 2001:db8:2::5-2001:db8:2:3::8",
        f"{t} POSTROUTING -p udp -s fd00:1::12 -j SNAT --to-source [2001:db8:2::6]:4000-4001",
        f"{t} POSTROUTING -p icmpv6 -o wan0 -j SNAT --to-source 2001:db8:2::7",
        f"{t} POSTROUTING -s fd00:1::/64 -o wan0 -j NETMAP --to 2001:db8:2:7::/64",
        f"{t} POSTROUTING -s fd00:1::/64 -d fd00:1::/64 -j MASQUERADE",
        f"{t} INPUT -p udp --dport 53 -j SNAT --to-source fd00:1::77",
        f"{t} POSTROUTING -s fd00:1::11 -j ACCEPT",
    ]
    destination = [
        f"{t} PREROUTING -i wan0 -p tcp --dport 80 -j DNAT --to-destination fd00:1::11",
        f"{t} PREROUTING -d 2001:db8:2::1 -p tcp --dport 80 -j DNAT --to-destination [fd00:1::11]:8080",
        f"{t} PREROUTING -d 2001:db8:2::1 -p udp --dport 5000:5010 -j DNAT --to-destination [fd00:1::12]:6000-6010",
        f"{t} PREROUTING -d 2001:db8:2::1 -p udp --dport 5000:5010 -j DNAT --to-destination [fd00:1::12]:6000-6010/5000",
        f"{t} PREROUTING -d 2001:db8:2::1 -p udp --dport 7000 -j DNAT --to-destination fd00:3::10-fd00:3::11",
        f"{t} PREROUTING -i lan0 -p udp --dport 53 -j REDIRECT",
        f"{t} PREROUTING -i lan0 -p udp --dport 53 -j REDIRECT --to-ports 5353",
        f"{t} PREROUTING -i lan0 -p udp --dport 53 -j DNAT --to-destination 2001:db8:a::9",
        f"{t} PREROUTING -i lan0 -p udp --dport 53 -j DNAT --to-destination ::1",
        f"{t} PREROUTING -d 2001:db8:2:7::/64 -j NETMAP --to fd00:1::/64",
        f"{t} PREROUTING -i wan0 -p icmpv6 -j DNAT --to-destination fd00:3::10",
        f"{t} OUTPUT -p udp --dport 53 -j DNAT --to-destination [2001:db8:9::7]:5353",
        f"{t} OUTPUT -p udp --dport 7000 -j DNAT --to-destination fd00:3::11",
        f"{t} OUTPUT -p udp --dport 5001 -j REDIRECT --to-ports 5002",
    ]
    other = [
        "ip6tables -A FORWARD -m conntrack --ctstate INVALID -j DROP",
        "ip6tables -A FORWARD -m conntrack --ctstate DNAT -j ACCEPT",
        "ip6tables -A FORWARD -p udp --dport 9 -j DROP",
        "ip6tables -A FORWARD -p udp --dport 1234 -j REJECT",
        "ip6tables -A FORWARD -p tcp --dport 25 -j REJECT --reject-with tcp-reset",
        "ip6tables -A FORWARD -i wan0 -m conntrack --ctstate NEW -p udp -j DROP",
        "ip6tables -t raw -A PREROUTING -p udp --dport 5005 -j NOTRACK",
    ]
    nft_source = [
        'oifname "wan0" masquerade',
        'oifname "wan0" udp dport 1-65535 masquerade to :3000-3003',
        'ip6 saddr fd00:1::/64 oifname "wan0" snat to 2001:db8:2::5',
        'ip6 saddr fd00:1::/64 oifname "wan0" snat to 2001:db8:2::5-2001:db8:2::8',
        'ip6 saddr fd00:1::/64 oifname "wan0" snat to 2001:db8:2::5-2001:db8:2:3::8 persistent',
        'ip6 saddr fd00:1::12 udp sport 1-65535 snat to [2001:db8:2::6]:4000-4001',
        'meta nfproto ipv4 masquerade',
        'snat ip to 192.0.2.1',
    ]
    nft_destination = [
        'ip6 daddr 2001:db8:2::1 tcp dport 80 dnat to [fd00:1::11]:8080',
        'ip6 daddr 2001:db8:2::1 udp dport 5000-5010 dnat to [fd00:1::12]:6000-6010',
        'iifname "lan0" udp dport 53 redirect to :5353',
        'iifname "lan0" udp dport 53 redirect',
        'ip6 nexthdr udp udp dport 53 dnat to 2001:db8:a::9',
    ]
    if r.random() < 0.3:
        family = r.choice(["ip6", "inet"])
        fits = lambda rule: family == "inet" or "ipv4" not in rule and "192" not in rule
        out = [f"nft add table {family} n", f"nft add chain {family} n pre '{{ type nat hook prerouting priority -100; }}'"]
        out.append(f"nft add chain {family} n post '{{ type nat hook postrouting priority 100; }}'")
        out += [f"nft add rule {family} n post {rule}" for rule in r.sample(list(filter(fits, nft_source)), r.randint(1, 3))]
        out += [f"nft add rule {family} n pre {rule}" for rule in r.sample(nft_destination, r.randint(1, 3))]
        # The shell must not see the quotes and brackets of names.
        return [o.replace('"', '\\"').replace("[", "\\[").replace("]", "\\]") for o in out]
    out = r.sample(source, r.randint(1, 3)) + r.sample(destination, r.randint(1, 4)) + r.sample(other, r.randint(0, 2))
    r.shuffle(out)
    return out


def setup(r):
    out = ["ip link set lo up"]
    for dev in PORTS:
        out.append(f"ip link set {dev} address {MACS[dev]}")
    out.append("sysctl -w net.ipv6.conf.all.forwarding=1")
    for dev, address in PORTS.items():
        out += [f"ip link set {dev} up", f"ip addr add {address} dev {dev}"]
    more = ["2001:db8:2::5/64", "fd00:7::5/64", "2001:db8:7::5/64 preferred_lft 0", "2001:db8:2::4/128"]
    out += [f"ip addr add {a} dev wan0" for a in r.sample(more, r.choice([0, 0, 1, 2, 3]))]
    if r.random() < 0.3:
        out.append("ip addr add fd00:1::5/64 dev lan0")
    out.append("ip -6 route add default via 2001:db8:2::fe")
    for dev, all in NEIGHBOURS.items():
        out += [f"ip neigh add {a} lladdr {HOST_MAC} dev {dev} nud permanent" for a in all]
    if r.random() < 0.3:
        out.append("ip link set wan0 mtu 1280")
    return out + rules(r)


def packet(r, src, dst):
    kind = r.choice(["udp", "udp", "udp", "tcp", "tcp", "icmp"])
    p = {"proto": kind, "src": src, "dst": dst, "data": r.choice([0, 8, 100, 400, 1250]), "ttl": r.choice([64, 64, 64, 64, 64, 2, 1])}
    if kind == "icmp":
        return {**p, "type": 128, "code": 0, "id": r.choice([1, 2, 700]), "n": r.randint(1, 9)}
    p["sport"] = r.choice([1000, 1000, 2000, 2000, 300, 700, 5353])
    p["dport"] = r.choice([53, 80, 80, 5000, 5001, 5005, 7000, 9, 1234, 25])
    if kind == "tcp":
        p.update(flags="S", seq=1000, ack=0, data=0)
        if r.random() < 0.1:
            p.update(flags=r.choice(["A", "R", "FA", "SA"]))
    return p


def step(r, steps):
    """What is done next."""
    captured = [(i, j) for i, s in enumerate(steps) for j in range(len(s["out"]))]
    kind = r.random()
    if captured and kind < 0.38:
        i, j = captured[-1] if r.random() < 0.6 else r.choice(captured)
        dev, p = steps[i]["out"][j]
        if "frag" not in p:
            return {"in": dev, "reply": [i, j], "flags": r.choice(["SA", "SA", "A", "R", "FA"]), "data": r.choice([0, 30])}
    if captured and kind < 0.48:
        i, j = r.choice(captured)
        dev, p = steps[i]["out"][j]
        if "frag" not in p and "about" not in p:
            src = r.choice([p["dst"], "2001:db8:2::fe", "fd00:1::13"])
            ty, code = r.choice([(1, 0), (1, 4), (3, 0), (2, 0)])
            return {"in": dev, "error": [i, j], "src": src, "type": ty, "code": code, **({"mtu": 1280} if ty == 2 else {})}
    before = [s for s in steps if "packet" in s]
    if before and kind < 0.62:
        s = r.choice(before)
        again = dict(s["packet"])
        if again["proto"] == "tcp":
            again.update(flags=r.choice(["A", "A", "FA", "S", "R"]), seq=1001, ack=r.choice([5001, 5002]))
        return {k: v for k, v in {**s, "packet": again}.items() if k not in ("out", "at", "table", "frames")}
    if kind < 0.74:
        dst = r.choice(NET + DMZ + LAN + ["2001:db8:2::1"])
        p = packet(r, "::", dst)
        if p["proto"] != "tcp":
            p["ttl"] = 64
            p["data"] = min(p["data"], 400)
            src = {"fd00:1": "fd00:1::1", "fd00:3": "fd00:3::1"}.get(dst[:6], "2001:db8:2::1")
            return {"send": True, "packet": {**p, "src": src}}
    if kind < 0.87:
        p = packet(r, r.choice(LAN), r.choice(NET + NET + DMZ + ["2001:db8:2::1", "fd00:1::1", "2001:db8:2::5"]))
        out = {"in": "lan0", "packet": p}
        if p["proto"] == "udp" and r.random() < 0.2:
            p["data"] = 1200
            out["pieces"] = r.choice([400, 600, 800])
        return out
    if kind < 0.95:
        ours = ["2001:db8:2::1"] * 3 + ["2001:db8:2::5", "2001:db8:2:7::11", "2001:db8:2:7::99", "2001:db8:2::6"]
        return {"in": "wan0", "packet": packet(r, r.choice(NET), r.choice(ours))}
    return {"in": "dmz0", "packet": packet(r, r.choice(DMZ), r.choice(NET + LAN + ["2001:db8:2::1"]))}


def reply_to(p, s):
    back = {"proto": p["proto"], "src": p["dst"], "dst": p["src"], "ttl": 60, "data": s["data"]}
    if p["proto"] == "icmp":
        if p["type"] != 128:
            return None
        return {**back, "type": 129, "code": 0, "id": p["id"], "n": p["n"]}
    back.update(sport=p["dport"], dport=p["sport"])
    if p["proto"] == "tcp":
        ack = p["seq"] + (1 if set("SF") & set(p["flags"]) else 0)
        seq = {"SA": 5000}.get(s["flags"], p["ack"] or 5001)
        back.update(flags=s["flags"], seq=seq, ack=ack, data=0)
    return back


def case(seed):
    r = random.Random(seed)
    commands = setup(r)
    router = Router(commands)
    router.collect()
    steps = []
    begin, at = time.monotonic(), 1000
    for _ in range(r.randint(12, 30)):
        s = step(r, steps)
        at += r.choice([1100, 1100, 1100, 1100, 3300, 35_200])
        time.sleep(max(0, begin + at / 1000 - time.monotonic()))
        s["at"] = at
        if "packet" in s and s.get("send"):
            router.send(s["packet"])
        elif "packet" in s:
            whole = ip_packet(s["packet"])
            for piece in fragments(whole, s["pieces"], len(steps) + 1) if "pieces" in s else [whole]:
                router.put(s["in"], piece)
        else:
            i, j = s.get("reply") or s["error"]
            p = steps[i]["out"][j][1]
            if "reply" in s:
                p = reply_to(p, s)
            else:
                quote = steps[i]["frames"][j][14:14 + 48]
                p = {"proto": "icmp", "src": s["src"], "dst": p["src"], "type": s["type"], "code": s["code"], "mtu": s.get("mtu", 0), "quote": quote}
            if p:
                router.put(s["in"], ip_packet(p))
        seen = router.collect()
        s["out"] = [(dev, p) for dev, p, _ in seen]
        s["frames"] = [f for _, _, f in seen]
        if r.random() < 0.12:
            time.sleep(0.25)
            s["table"] = sh("ip netns exec r cat /proc/net/nf_conntrack").splitlines()
        steps.append(s)
    router.close()
    for s in steps:
        s.pop("frames")
    return {"seed": seed, "setup": commands, "steps": steps}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    time.sleep(1)
    with open(out, "w") as file:
        for seed in range(first, first + count):
            print(json.dumps(case(seed)), file=file, flush=True)


main()
