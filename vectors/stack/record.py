#!/usr/bin/env python3
"""Records what a real router does to packets whose addresses it translates.

    record.py FIRST COUNT OUT.jsonl

One line for each seed: the commands, the packets that are put on the router's wires or sent by itself, what came out of it after each, and its table of
connections. Run it inside the user-mode kernel, where time is exact; the kernel needs NAT (`penstock kernel build`). Nothing outside two network namespaces of its
own is touched.
"""
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

PORTS = {"lan0": "10.0.0.1/24", "wan0": "192.0.2.1/24", "dmz0": "172.16.0.1/24"}
LAN = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
DMZ = ["172.16.0.10", "172.16.0.11"]
NET = ["198.51.100.7", "203.0.113.9", "192.0.2.100"]
NEIGHBOURS = {"lan0": LAN, "dmz0": DMZ, "wan0": ["192.0.2.254", "192.0.2.100"]}
HOST_MAC = "02:00:00:00:00:99"


def sh(command, check=True):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16}


def transport(p, src, dst):
    """The bytes behind the IP header."""
    data = bytes(p.get("data", 0))
    if p["proto"] == "udp":
        head = struct.pack("!HHHH", p["sport"], p["dport"], 8 + len(data), 0)
        number, at = 17, 6
    elif p["proto"] == "tcp":
        flags = sum(FLAGS[f] for f in p["flags"])
        head = struct.pack("!HHIIBBHHH", p["sport"], p["dport"], p["seq"], p["ack"], 0x50, flags, 8000, 0, 0)
        number, at = 6, 16
    else:
        body = p.get("quote", b"") or data
        head = struct.pack("!BBHHH", p["type"], p["code"], 0, p.get("id", 0), p.get("n", 0))
        return head[:2] + struct.pack("!H", checksum(head + body)) + head[4:] + body
    pseudo = src + dst + struct.pack("!BBH", 0, number, len(head) + len(data))
    total = checksum(pseudo + head + data) or 0xffff
    return head[:at] + struct.pack("!H", total) + head[at + 2:] + data


NUMBER = {"icmp": 1, "tcp": 6, "udp": 17}


def ip_packet(p):
    src, dst = socket.inet_aton(p["src"]), socket.inet_aton(p["dst"])
    body = transport(p, src, dst)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, p.get("tos", 0), 20 + len(body), p.get("ip_id", 1), p.get("df", 0) * 0x4000, p.get("ttl", 64), NUMBER[p["proto"]], 0, src, dst)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


def fragments(whole, size):
    """The same packet in fragments of so many bytes of payload."""
    head, body = whole[:20], whole[20:]
    out = []
    for at in range(0, len(body), size):
        piece = body[at:at + size]
        more = 0x2000 if at + size < len(body) else 0
        new = head[:2] + struct.pack("!H", 20 + len(piece)) + head[4:6] + struct.pack("!H", more | at // 8) + head[8:10] + b"\0\0" + head[12:]
        out.append(new[:10] + struct.pack("!H", checksum(new)) + new[12:] + piece)
    return out


def transport_is_right(data, src, dst, number):
    """Whether the checksum over what is behind the IP header is right."""
    if number == 1:
        return checksum(data) == 0
    pseudo = src + dst + struct.pack("!BBH", 0, number, len(data))
    return checksum(pseudo + data) == 0


def read(frame):
    """A frame as a test compares it; None: not IPv4."""
    if frame[12:14] != b"\x08\x00":
        return None
    ip = frame[14:]
    length, frag = struct.unpack("!H", ip[2:4])[0], struct.unpack("!H", ip[6:8])[0]
    ip = ip[:length]
    names = {1: "icmp", 6: "tcp", 17: "udp"}
    src, dst = socket.inet_ntoa(ip[12:16]), socket.inet_ntoa(ip[16:20])
    p = {"proto": names.get(ip[9], str(ip[9])), "src": src, "dst": dst, "ttl": ip[8], "tos": ip[1], "len": length}
    if frag & 0x3fff:
        p["frag"] = frag & 0x3fff
    if frag & 0x4000:
        p["df"] = 1
    if frag & 0x1fff:
        return p
    t = ip[20:]
    if p["proto"] == "icmp":
        p["type"], p["code"] = t[0], t[1]
        if t[0] in (0, 8):
            p["id"], p["n"] = struct.unpack("!HH", t[4:8])
        else:
            q = t[8:]
            about = {"proto": names.get(q[9], str(q[9])), "src": socket.inet_ntoa(q[12:16]), "dst": socket.inet_ntoa(q[16:20])}
            if about["proto"] == "icmp":
                about["id"] = struct.unpack("!H", q[24:26])[0]
            else:
                about["sport"], about["dport"] = struct.unpack("!HH", q[20:24])
            p["about"] = about
    else:
        p["sport"], p["dport"] = struct.unpack("!HH", t[:4])
        if p["proto"] == "tcp":
            p["seq"], p["ack"] = struct.unpack("!II", t[4:12])
            p["flags"] = "".join(f for f, bit in FLAGS.items() if t[13] & bit)
    return p


class Router:
    """The router in namespace r, the other ends of its wires in namespace w, with a socket on each."""

    def __init__(self, commands):
        sh("ip netns del r; ip netns del w", check=False)
        sh("ip netns add r; ip netns add w")
        for dev in PORTS:
            sh(f"ip link add {dev} netns r type veth peer name {dev} netns w")
            sh(f"ip netns exec w sysctl -qw net.ipv6.conf.{dev}.disable_ipv6=1; ip netns exec r sysctl -qw net.ipv6.conf.{dev}.disable_ipv6=1")
            sh(f"ip -n w link set {dev} address {HOST_MAC} arp off; ip -n w link set {dev} up; ip netns exec w ethtool -K {dev} tx off", check=False)
            sh(f"ip netns exec r ethtool -K {dev} tx off", check=False)
        for command in commands:
            sh("ip netns exec r " + command.replace("iptables ", "iptables-legacy "))
        self.sockets = {}
        self.mac = {}
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        other = os.open("/run/netns/w", os.O_RDONLY)
        self.enter(other)
        for dev in PORTS:
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            s.bind((dev, 0))
            s.setblocking(False)
            self.sockets[dev] = s
        self.enter(own)
        for dev in PORTS:
            text = sh(f"ip -n r -o link show dev {dev}")
            self.mac[dev] = bytes.fromhex(text.split("link/ether ")[1].split()[0].replace(":", ""))
        router = os.open("/run/netns/r", os.O_RDONLY)
        self.enter(router)
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.enter(own)
        for fd in (own, other, router):
            os.close(fd)

    @staticmethod
    def enter(fd):
        import ctypes
        if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) != 0:
            raise SystemExit("setns")

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
                if where[2] == socket.PACKET_OUTGOING:
                    continue
                p = read(frame)
                if p:
                    seen.append((dev, p, frame))
        return seen

    def put(self, dev, ip):
        frame = self.mac[dev] + bytes.fromhex(HOST_MAC.replace(":", "")) + b"\x08\x00" + ip
        self.sockets[dev].send(frame)

    def send(self, p):
        try:
            self.raw.sendto(ip_packet(p), (p["dst"], 0))
        except OSError:
            pass


def rules(r):
    """Random rules of translation, iptables' or nft's."""
    t = "iptables -t nat -A"
    source = [
        f"{t} POSTROUTING -o wan0 -j MASQUERADE",
        f"{t} POSTROUTING -o wan0 -p udp -j MASQUERADE --to-ports 3000-3003",
        f"{t} POSTROUTING -o wan0 -p tcp -j MASQUERADE --to-ports 3000-3100",
        f"{t} POSTROUTING -s 10.0.0.0/24 -o wan0 -j SNAT --to-source 192.0.2.5",
        f"{t} POSTROUTING -s 10.0.0.0/24 -o wan0 -j SNAT --to-source 192.0.2.5-192.0.2.8",
        f"{t} POSTROUTING -s 10.0.0.0/24 -o wan0 -j SNAT --to-source 192.0.2.5-192.0.2.8 --persistent",
        f"{t} POSTROUTING -p udp -s 10.0.0.12 -j SNAT --to-source 192.0.2.6:4000-4001",
        f"{t} POSTROUTING -p icmp -o wan0 -j SNAT --to-source 192.0.2.7",
        f"{t} POSTROUTING -s 10.0.0.0/28 -o wan0 -j NETMAP --to 192.0.2.16/28",
        f"{t} POSTROUTING -s 10.0.0.0/24 -d 10.0.0.0/24 -j MASQUERADE",
        f"{t} INPUT -p udp --dport 53 -j SNAT --to-source 10.0.0.77",
        f"{t} POSTROUTING -s 10.0.0.11 -j ACCEPT",
    ]
    destination = [
        f"{t} PREROUTING -i wan0 -p tcp --dport 80 -j DNAT --to-destination 10.0.0.11",
        f"{t} PREROUTING -d 192.0.2.1 -p tcp --dport 80 -j DNAT --to-destination 10.0.0.11:8080",
        f"{t} PREROUTING -d 192.0.2.1 -p udp --dport 5000:5010 -j DNAT --to-destination 10.0.0.12:6000-6010",
        f"{t} PREROUTING -d 192.0.2.1 -p udp --dport 5000:5010 -j DNAT --to-destination 10.0.0.12:6000-6010/5000",
        f"{t} PREROUTING -d 192.0.2.1 -p udp --dport 7000 -j DNAT --to-destination 172.16.0.10-172.16.0.11",
        f"{t} PREROUTING -i lan0 -p udp --dport 53 -j REDIRECT",
        f"{t} PREROUTING -i lan0 -p udp --dport 53 -j REDIRECT --to-ports 5353",
        f"{t} PREROUTING -i lan0 -p udp --dport 53 -j DNAT --to-destination 203.0.113.9",
        f"{t} PREROUTING -d 192.0.2.16/28 -j NETMAP --to 10.0.0.0/28",
        f"{t} PREROUTING -i wan0 -p icmp -j DNAT --to-destination 172.16.0.10",
        f"{t} OUTPUT -p udp --dport 53 -j DNAT --to-destination 198.51.100.7:5353",
        f"{t} OUTPUT -p udp --dport 7000 -j DNAT --to-destination 172.16.0.11",
        f"{t} OUTPUT -p udp --dport 5001 -j REDIRECT --to-ports 5002",
    ]
    other = [
        "iptables -A FORWARD -m conntrack --ctstate INVALID -j DROP",
        "iptables -A FORWARD -m conntrack --ctstate DNAT -j ACCEPT",
        "iptables -A FORWARD -p udp --dport 9 -j DROP",
        "iptables -A FORWARD -p udp --dport 1234 -j REJECT",
        "iptables -A FORWARD -p tcp --dport 25 -j REJECT --reject-with tcp-reset",
        "iptables -A FORWARD -i wan0 -m conntrack --ctstate NEW -p udp -j DROP",
        "iptables -t raw -A PREROUTING -p udp --dport 5005 -j NOTRACK",
    ]
    nft_source = [
        'oifname "wan0" masquerade',
        'oifname "wan0" udp dport 1-65535 masquerade to :3000-3003',
        'ip saddr 10.0.0.0/24 oifname "wan0" snat to 192.0.2.5',
        'ip saddr 10.0.0.0/24 oifname "wan0" snat to 192.0.2.5-192.0.2.8',
        'ip saddr 10.0.0.0/24 oifname "wan0" snat to 192.0.2.5-192.0.2.8 persistent',
        'udp sport 1-65535 ip saddr 10.0.0.12 snat to 192.0.2.6:4000-4001',
    ]
    nft_destination = [
        'ip daddr 192.0.2.1 tcp dport 80 dnat to 10.0.0.11:8080',
        'ip daddr 192.0.2.1 udp dport 5000-5010 dnat to 10.0.0.12:6000-6010',
        'iifname "lan0" udp dport 53 redirect to :5353',
        'iifname "lan0" udp dport 53 redirect',
        'iifname "lan0" udp dport 53 dnat to 203.0.113.9',
    ]
    if r.random() < 0.25:
        out = ["nft add table ip n", "nft add chain ip n pre '{ type nat hook prerouting priority -100; }'", "nft add chain ip n post '{ type nat hook postrouting priority 100; }'"]
        out += [f"nft add rule ip n post {rule}" for rule in r.sample(nft_source, r.randint(1, 2))]
        out += [f"nft add rule ip n pre {rule}" for rule in r.sample(nft_destination, r.randint(1, 3))]
        # The shell must not see the quotes of names.
        return [o.replace('"', '\\"') for o in out]
    out = r.sample(source, r.randint(1, 3)) + r.sample(destination, r.randint(1, 4)) + r.sample(other, r.randint(0, 2))
    r.shuffle(out)
    return out


def setup(r):
    out = ["ip link set lo up", "sysctl -w net.ipv4.ip_forward=1", "sysctl -w net.ipv4.conf.all.send_redirects=0"]
    for dev, address in PORTS.items():
        out += [f"sysctl -w net.ipv4.conf.{dev}.send_redirects=0", f"ip addr add {address} dev {dev}", f"ip link set {dev} up"]
    if r.random() < 0.5:
        out.append("ip addr add 192.0.2.5/24 dev wan0")
    out.append("ip route add default via 192.0.2.254")
    for dev, all in NEIGHBOURS.items():
        out += [f"ip neigh add {a} lladdr {HOST_MAC} dev {dev} nud permanent" for a in all]
    if r.random() < 0.3:
        out.append("ip link set wan0 mtu 1000")
    return out + rules(r)


def packet(r, src, dst):
    kind = r.choice(["udp", "udp", "udp", "tcp", "tcp", "icmp"])
    p = {"proto": kind, "src": src, "dst": dst, "data": r.choice([0, 8, 100, 400]), "ttl": r.choice([64, 64, 64, 64, 64, 2, 1])}
    if kind == "icmp":
        return {**p, "type": 8, "code": 0, "id": r.choice([1, 2, 700]), "n": r.randint(1, 9)}
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
            src = r.choice([p["dst"], "192.0.2.254", "10.0.0.13"])
            return {"in": dev, "error": [i, j], "src": src, "type": r.choice([3, 3, 11]), "code": r.choice([0, 1])}
    before = [s for s in steps if "packet" in s]
    if before and kind < 0.62:
        s = r.choice(before)
        again = dict(s["packet"])
        if again["proto"] == "tcp":
            again.update(flags=r.choice(["A", "A", "FA", "S", "R"]), seq=1001, ack=r.choice([5001, 5002]))
        return {k: v for k, v in {**s, "packet": again}.items() if k not in ("out", "at", "table")}
    if kind < 0.74:
        dst = r.choice(NET + DMZ + LAN + ["192.0.2.1"])
        p = packet(r, "0.0.0.0", dst)
        if p["proto"] != "tcp":
            p["ttl"] = 64
            src = {"10": "10.0.0.1", "17": "172.16.0.1", "19": "192.0.2.1", "20": "192.0.2.1"}[dst[:2]]
            return {"send": True, "packet": {**p, "src": src}}
    if kind < 0.87:
        p = packet(r, r.choice(LAN), r.choice(NET + NET + DMZ + ["192.0.2.1", "10.0.0.1", "192.0.2.5"]))
        out = {"in": "lan0", "packet": p}
        if p["proto"] == "udp" and r.random() < 0.15:
            p["data"] = 1200
            out["pieces"] = r.choice([400, 600, 800])
        return out
    if kind < 0.95:
        return {"in": "wan0", "packet": packet(r, r.choice(NET), r.choice(["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.5", "192.0.2.17", "192.0.2.27", "192.0.2.6"]))}
    return {"in": "dmz0", "packet": packet(r, r.choice(DMZ), r.choice(NET + LAN + ["192.0.2.1"]))}


def reply_to(p, s):
    back = {"proto": p["proto"], "src": p["dst"], "dst": p["src"], "ttl": 60, "data": s["data"]}
    if p["proto"] == "icmp":
        if p["type"] != 8:
            return None
        return {**back, "type": 0, "code": 0, "id": p["id"], "n": p["n"]}
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
    begin = time.monotonic()
    at = 1000
    for _ in range(r.randint(12, 30)):
        s = step(r, steps)
        at += r.choice([1100, 1100, 1100, 1100, 3300, 35_200])
        time.sleep(max(0, begin + at / 1000 - time.monotonic()))
        s["at"] = at
        if "packet" in s and s.get("send"):
            router.send(s["packet"])
        elif "packet" in s:
            whole = ip_packet({**s["packet"], "ip_id": len(steps) + 1})
            for piece in fragments(whole, s["pieces"]) if "pieces" in s else [whole]:
                router.put(s["in"], piece)
        else:
            i, j = s.get("reply") or s["error"]
            p = steps[i]["out"][j][1]
            if "reply" in s:
                p = reply_to(p, s)
            else:
                frame = steps[i]["frames"][j]
                p = {"proto": "icmp", "src": s["src"], "dst": p["src"], "type": s["type"], "code": s["code"], "quote": frame[14:14 + 28]}
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
        for frame in s.pop("frames"):
            ip = frame[14:]
            length, frag = struct.unpack("!H", ip[2:4])[0], struct.unpack("!H", ip[6:8])[0]
            if not frag & 0x3fff:
                whole = ip[20:length]
                if not (ip[9] == 17 and whole[6:8] == b"\0\0") and not transport_is_right(whole, ip[12:16], ip[16:20], ip[9]):
                    raise SystemExit(f"seed {seed}: a checksum is wrong")
    return {"seed": seed, "setup": commands, "steps": steps}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    time.sleep(1)
    with open(out, "w") as file:
        for seed in range(first, first + count):
            print(json.dumps(case(seed)), file=file, flush=True)


main()
