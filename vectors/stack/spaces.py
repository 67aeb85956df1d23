#!/usr/bin/env python3
"""Records what a real machine with network namespaces in it does to packets.

    spaces.py FIRST COUNT OUT.jsonl

One line for each seed: the commands, the packets that are put on the machine's two wires, what came out of it by them after each, and at the end what each
device and qdisc in each namespace has counted. Run it inside a kernel of one's own (`run-in-kernel --engine uml`). Nothing outside the network namespaces it
makes is touched. It shares its packets with record.py.
"""
import importlib.util
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time

spec = importlib.util.spec_from_file_location("record", os.path.join(os.path.dirname(os.path.abspath(__file__)), "record.py"))
record = importlib.util.module_from_spec(spec)
sys.argv, argv = [sys.argv[0], "0", "0", "/dev/null"], sys.argv
spec.loader.exec_module(record)
sh, read, ip_packet, HOST_MAC = record.sh, record.read, record.ip_packet, record.HOST_MAC
WIRES = ["lan0", "wan0"]
LAN, NET = ["10.0.0.11", "10.0.0.12"], ["192.0.2.100", "192.0.2.101"]
LAN6, NET6 = ["fd00:a::11", "fd00:a::12"], ["fd00:b::100", "fd00:b::101"]


def six_bytes(p):
    """An IPv6 packet."""
    src, dst = socket.inet_pton(socket.AF_INET6, p["src"]), socket.inet_pton(socket.AF_INET6, p["dst"])
    data = bytes(p.get("data", 0))
    if p["proto"] == "udp":
        body, number, at = struct.pack("!HHHH", p["sport"], p["dport"], 8 + len(data), 0) + data, 17, 6
    else:
        body, number, at = struct.pack("!BBHHH", p["type"], p["code"], 0, p["id"], p["n"]) + data, 58, 2
    total = record.checksum(src + dst + struct.pack("!IBBBB", len(body), 0, 0, 0, number) + body) or 0xffff
    body = body[:at] + struct.pack("!H", total) + body[at + 2:]
    return struct.pack("!IHBB", 0x60000000 | p.get("tos", 0) << 20, len(body), number, p.get("ttl", 64)) + src + dst + body


def read_six(frame):
    """A frame of IPv6 as a test compares it; None: another, or one of neighbour discovery or multicast listeners."""
    if frame[12:14] != b"\x86\xdd":
        return None
    ip = frame[14:]
    names = {58: "icmp6", 17: "udp"}
    src, dst = (socket.inet_ntop(socket.AF_INET6, ip[a:a + 16]) for a in (8, 24))
    word, length, number, ttl = struct.unpack("!IHBB", ip[:8])
    p = {"proto": names.get(number, str(number)), "src": src, "dst": dst, "ttl": ttl, "tos": word >> 20 & 255, "len": length + 40}
    t = ip[40:]
    if number == 17:
        p["sport"], p["dport"] = struct.unpack("!HH", t[:4])
    elif number == 58:
        if 130 <= t[0] <= 143:
            return None
        p["type"], p["code"] = t[0], t[1]
        if t[0] >= 128:
            p["id"], p["n"] = struct.unpack("!HH", t[4:8])
        elif t[0] == 2:
            p["mtu"] = struct.unpack("!I", t[4:8])[0]
    else:
        return None
    return p


class Machine:
    def __init__(self, commands, six):
        for name in sh("ip netns list").split("\n"):
            if name.strip():
                sh(f"ip netns del {name.split()[0]}")
        sh("ip netns add r; ip netns add w")
        quiet = "net.ipv6.conf.all.accept_ra=0 net.ipv6.conf.default.accept_ra=0 net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.router_solicitations=0 net.ipv6.conf.default.router_solicitations=0"
        if not six:
            quiet = "net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"
        sh(f"ip netns exec r sysctl -qw {quiet}; ip netns exec w sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv6.conf.all.disable_ipv6=1")
        for dev in WIRES:
            sh(f"ip link add {dev} netns r type veth peer name {dev} netns w")
            sh(f"ip -n w link set {dev} address {HOST_MAC} arp off; ip -n w link set {dev} mtu 9000 up; ip netns exec w ethtool -K {dev} tx off; ip netns exec r ethtool -K {dev} tx off", check=False)
            sh(f"ip -n r link set {dev} up")
        for command in commands:
            # What one names inside another is not seen outside it.
            inside = "" if command.startswith("ip netns add ") else "ip netns exec r "
            sh((inside + " " + command).replace(" iptables ", " iptables-legacy "))
            if command.startswith("ip netns add "):
                sh(f"ip netns exec {command.split()[-1]} sysctl -qw {quiet}")
        self.commands = commands
        self.spaces = ["r"] + [c.split()[-1] for c in commands if c.startswith("ip netns add ")]
        self.where = {dev: next(s for s in self.spaces if dev in sh(f"ip -n {s} -br link")) for dev in WIRES}
        own, other = os.open("/proc/self/ns/net", os.O_RDONLY), os.open("/run/netns/w", os.O_RDONLY)
        record.Router.enter(other)
        self.sockets, self.mac = {}, {}
        for dev in WIRES:
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            s.bind((dev, 0))
            s.setblocking(False)
            self.sockets[dev] = s
        record.Router.enter(own)
        for dev in WIRES:
            text = sh(f"ip -n {self.where[dev]} -o link show dev {dev}")
            self.mac[dev] = bytes.fromhex(text.split("link/ether ")[1].split()[0].replace(":", ""))
        os.close(own)
        os.close(other)

    def put(self, dev, p):
        six = ":" in p["src"]
        head = self.mac[dev] + bytes.fromhex(HOST_MAC.replace(":", "")) + (b"\x86\xdd" if six else b"\x08\x00")
        self.sockets[dev].send(head + (six_bytes(p) if six else ip_packet(p)))

    def collect(self):
        time.sleep(0.08)
        seen = []
        for dev in WIRES:
            while True:
                try:
                    frame, where = self.sockets[dev].recvfrom(65536)
                except BlockingIOError:
                    break
                if where[2] == socket.PACKET_OUTGOING:
                    continue
                p = read(frame) or read_six(frame)
                if p:
                    seen.append([dev, p])
        return seen

    def counted(self, links):
        """What devices (those but the wires and lo, where there is no IPv6) and qdiscs have counted."""
        all = []
        for space in self.spaces:
            of = sorted(json.loads(sh(f"ip -n {space} -s -j link show")), key=lambda d: d["ifname"])
            for d in of:
                # What a kernel with tunnels in it has in each namespace says nothing.
                if d["ifname"] in ["erspan0", "gre0", "gretap0", "tunl0", "sit0", "ip6tnl0", "ip6gre0", "ip_vti0", "ip6_vti0"]:
                    continue
                if links and d["ifname"] not in ["lo", *WIRES]:
                    rx, tx = d["stats64"]["rx"], d["stats64"]["tx"]
                    all.append([space, d["ifname"], d["operstate"], d["mtu"], rx["packets"], rx["bytes"], tx["packets"], tx["bytes"]])
            text = subprocess.run(["ip", "netns", "exec", space, "tc", "-s", "-j", "qdisc", "show"], capture_output=True, text=True).stdout
            for q in sorted(json.loads(text or "[]"), key=lambda q: (q["dev"], q["handle"])):
                if q["dev"] == "lo" or q["kind"] in ("noqueue", "clsact") or not links and q["dev"] in WIRES:
                    continue
                keys = ["bytes", "packets", "drops", "overlimits", "backlog", "qlen"] if links else ["drops", "backlog", "qlen"]
                all.append([space, q["dev"], q["kind"], q["handle"]] + [q[k] for k in keys])
        return all

    def close(self):
        for s in self.sockets.values():
            s.close()


def neighbours(at, dev, ips):
    return [f"{at} neigh add {ip} lladdr {HOST_MAC} nud permanent dev {dev}" for ip in ips]


def queue(r, dev):
    """A qdisc or a filter of a veth, in which time has no part."""
    return r.choice([
        [],
        [f"tc qdisc add dev {dev} root handle 1: prio"],
        [f"tc qdisc add dev {dev} root handle 1: pfifo limit 30"],
        [f"tc qdisc add dev {dev} root handle 1: fq_codel"],
        [f"tc qdisc add dev {dev} root handle 1: htb default 10", f"tc class add dev {dev} parent 1: classid 1:10 htb rate 100mbit"],
        [f"tc qdisc add dev {dev} root handle 1: prio", f"tc filter add dev {dev} parent 1: protocol ip prio 1 u32 match ip dport 2000 0xffff action drop"],
        [f"tc qdisc add dev {dev} clsact", f"tc filter add dev {dev} egress protocol ip prio 1 flower ip_proto udp dst_port 2000 action drop"],
        [f"tc qdisc add dev {dev} clsact", f"tc filter add dev {dev} ingress protocol ip prio 1 flower ip_proto udp dst_port 5353 action drop"],
    ])


def in_space(space, command):
    if command.startswith("tc "):
        return f"tc -n {space} {command[3:]}"
    if command.startswith("ip "):
        return f"ip -n {space} {command[3:]}"
    return f"ip netns exec {space} {command}"


def rules(r, space, ins):
    """Rules of a namespace that forwards."""
    all = [
        "iptables -A FORWARD -p udp --dport 5353 -j DROP",
        "iptables -A FORWARD -p udp --dport 2000 -j REJECT",
        "iptables -t mangle -A PREROUTING -p udp -j MARK --set-mark 7",
        "iptables -t mangle -A FORWARD -j TOS --set-tos 0x10",
        "iptables -A INPUT -p icmp -j DROP",
        "iptables -t mangle -A POSTROUTING -p udp -j TTL --ttl-set 33",
    ]
    commands = r.sample(all, r.choice([0, 0, 1, 2]))
    return [in_space(space, c) if space else c for c in commands]


def containers(r, six):
    """Containers behind a bridge."""
    n = r.choice([1, 2, 3])
    c = ["ip link add br0 type bridge", "ip addr add 172.17.0.1/16 dev br0", "ip link set br0 up"]
    if six:
        c.append("ip -6 addr add fd00:c::1/64 dev br0 nodad")
    for i in range(1, n + 1):
        c.append(f"ip netns add c{i}")
        way = r.choice(["at", "moved", "inside"])
        if way == "at":
            c.append(f"ip link add v{i} type veth peer name eth0 netns c{i}")
        elif way == "moved":
            c += [f"ip link add v{i} type veth peer name tmp", f"ip link set tmp netns c{i}", f"ip -n c{i} link set tmp name eth0"]
        else:
            c += [f"ip -n c{i} link add eth0 type veth peer name v{i}", f"ip -n c{i} link set v{i} netns r"]
        mtu = r.choice([1500, 1500, 1400])
        c += [f"ip link set v{i} mtu {mtu}", f"ip -n c{i} link set eth0 mtu {mtu}", f"ip link set v{i} master br0 up", f"ip -n c{i} link set lo up", f"ip -n c{i} link set eth0 up"]
        c += [f"ip -n c{i} addr add 172.17.0.{i + 1}/16 dev eth0", f"ip -n c{i} route add default via 172.17.0.1"]
        if six:
            c += [f"ip -n c{i} -6 addr add fd00:c::{i + 1}/64 dev eth0 nodad", f"ip -n c{i} -6 route add default via fd00:c::1"]
        c += queue(r, f"v{i}") + [in_space(f"c{i}", q) for q in queue(r, "eth0")]
    c += r.choice([
        [],
        ["iptables -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o br0 -j MASQUERADE"],
        ["iptables -t nat -A PREROUTING -i wan0 -p udp --dport 8080 -j DNAT --to-destination 172.17.0.2:53", "iptables -A FORWARD -i lan0 -j ACCEPT"],
    ])
    c += rules(r, None, [])
    return c, [f"172.17.0.{i + 1}" for i in range(1, n + 1)] + ["172.17.0.1"], [f"fd00:c::{i + 1}" for i in range(1, n + 1)] + ["fd00:c::1"]


def chain(r, six):
    """Namespaces in a row, behind one another."""
    n = r.choice([1, 2, 3])
    c, to, to6 = [], [], []
    before = None
    at = lambda space, command: in_space(space, command) if space else command
    for i in range(1, n + 1):
        c.append(f"ip netns add c{i}")
        # `ip -n c1 link add a netns b` names the other's place itself.
        c.append(at(before, f"ip link add d{i} type veth peer name u{i} netns c{i}"))
        mtu = r.choice([1500, 1500, 1500, 1300])
        c += [at(before, f"ip link set d{i} mtu {mtu} up"), f"ip -n c{i} link set u{i} mtu {mtu} up", f"ip -n c{i} link set lo up"]
        c += [at(before, f"ip addr add 10.{i}.0.1/30 dev d{i}"), f"ip -n c{i} addr add 10.{i}.0.2/30 dev u{i}"]
        c += [f"ip -n c{i} route add default via 10.{i}.0.1", f"ip netns exec c{i} sysctl -qw net.ipv4.ip_forward=1"]
        if six:
            c += [at(before, f"ip -6 addr add fd00:{i}::1/64 dev d{i} nodad"), f"ip -n c{i} -6 addr add fd00:{i}::2/64 dev u{i} nodad"]
            c += [f"ip -n c{i} -6 route add default via fd00:{i}::1", f"ip netns exec c{i} sysctl -qw net.ipv6.conf.all.forwarding=1"]
        for j in range(1, i):
            who = f"c{j - 1}" if j > 1 else None
            c.append(at(who, f"ip route add 10.{i}.0.0/30 via 10.{j}.0.2"))
            if six:
                c.append(at(who, f"ip -6 route add fd00:{i}::/64 via fd00:{j}::2"))
        c += [at(before, q) for q in queue(r, f"d{i}")] + [in_space(f"c{i}", q) for q in queue(r, f"u{i}")]
        c += rules(r, f"c{i}", [])
        to += [f"10.{i}.0.2", f"10.{i}.0.1"]
        to6 += [f"fd00:{i}::2"]
        before = f"c{i}"
    c += r.choice([[], ["iptables -t nat -A POSTROUTING -o d1 -j MASQUERADE"], ["ip route add blackhole 10.9.0.0/16"]])
    return c, to + ["10.9.0.1"], to6


def moved(r, six):
    """The card to the network is a namespace's, which is a router of its own."""
    c = ["ip netns add gw", "ip link set wan0 netns gw", "ip link add vup type veth peer name vdown netns gw"]
    mtu = r.choice([1500, 1500, 1492])
    c += [f"ip link set vup mtu {mtu} up", f"ip -n gw link set vdown mtu {mtu} up", "ip addr add 10.1.0.1/30 dev vup", "ip -n gw addr add 10.1.0.2/30 dev vdown"]
    c += ["ip -n gw addr add 192.0.2.1/24 dev wan0", "ip -n gw link set wan0 up", "ip route add default via 10.1.0.2", "ip -n gw route add 10.0.0.0/24 via 10.1.0.1"]
    c += ["ip netns exec gw sysctl -qw net.ipv4.ip_forward=1"] + neighbours("ip -n gw", "wan0", NET)
    if six:
        c += ["ip -6 addr add fd00:1::1/64 dev vup nodad", "ip -n gw -6 addr add fd00:1::2/64 dev vdown nodad", "ip -n gw -6 addr add fd00:b::1/64 dev wan0 nodad"]
        c += ["ip -6 route add default via fd00:1::2", "ip -n gw -6 route add fd00:a::/64 via fd00:1::1", "ip netns exec gw sysctl -qw net.ipv6.conf.all.forwarding=1"]
        c += neighbours("ip -n gw", "wan0", NET6)
    c += queue(r, "vup") + [in_space("gw", q) for q in queue(r, "vdown")]
    c += r.choice([[], ["ip netns exec gw iptables -t nat -A POSTROUTING -o wan0 -j MASQUERADE"]])
    c += rules(r, "gw", [])
    return c, NET + ["10.1.0.2", "192.0.2.1"], NET6 + ["fd00:1::2"]


def case(seed):
    r = random.Random(seed)
    six = r.random() < 0.4
    kind = r.choice([containers, chain, moved])
    commands = ["sysctl -qw net.ipv4.ip_forward=1"]
    if six:
        commands.append("sysctl -qw net.ipv6.conf.all.forwarding=1")
    commands += ["ip addr add 10.0.0.1/24 dev lan0"] + neighbours("ip", "lan0", LAN)
    if six:
        commands += ["ip -6 addr add fd00:a::1/64 dev lan0 nodad"] + neighbours("ip", "lan0", LAN6)
    if kind is not moved:
        commands += ["ip addr add 192.0.2.1/24 dev wan0"] + neighbours("ip", "wan0", NET)
        if six:
            commands += ["ip -6 addr add fd00:b::1/64 dev wan0 nodad"] + neighbours("ip", "wan0", NET6)
    more, to, to6 = kind(r, six)
    commands += more
    machine = Machine(commands, six)
    time.sleep(1.2 if six else 0.3)
    machine.collect()
    steps = []
    began = time.monotonic()
    for n in range(r.randint(8, 14)):
        dev = "lan0" if kind is moved else r.choice(WIRES)
        if six and r.random() < 0.5:
            p = {"src": r.choice(LAN6 if dev == "lan0" else NET6), "dst": r.choice(to6)}
            protos = ["udp", "icmp6"]
        else:
            p = {"src": r.choice(LAN if dev == "lan0" else NET), "dst": r.choice(to), "ip_id": n + 1, "df": r.choice([0, 1])}
            protos = ["udp", "udp", "icmp", "tcp"]
            if "8080" in str(commands) and dev == "wan0" and r.random() < 0.5:
                p["dst"], protos = "192.0.2.1", ["udp"]
        p["proto"] = r.choice(protos)
        p["ttl"] = r.choice([64, 64, 64, 3, 2, 1])
        p["tos"] = r.choice([0, 0, 0x10, 0xb8])
        p["data"] = r.choice([0, 10, 100, 1000, 1300, 1372, 1400, 1452 if ":" in p["src"] else 1472])
        if p["proto"] == "udp":
            p["sport"], p["dport"] = r.randint(1024, 1100), r.choice([8080, 2000, 5353, 9])
        elif p["proto"] == "tcp":
            p["sport"], p["dport"], p["seq"], p["ack"], p["flags"], p["data"] = r.randint(1024, 1100), 80, 1000, 0, "S", 0
        elif p["proto"] == "icmp":
            p["type"], p["code"], p["id"], p["n"] = 8, 0, r.randint(1, 9), n
        else:
            p["type"], p["code"], p["id"], p["n"] = 128, 0, r.randint(1, 9), n
        step = {"in": dev, "packet": p}
        outs = [(i, k) for i, s in enumerate(steps) for k, (d, o) in enumerate(s["out"]) if d == "wan0" and "sport" in o and o["proto"] == "udp" and "frag" not in o]
        if outs and r.random() < 0.3:
            i, k = r.choice(outs)
            o = steps[i]["out"][k][1]
            p = {"proto": "udp", "src": o["dst"], "dst": o["src"], "sport": o["dport"], "dport": o["sport"], "ttl": 60, "data": r.choice([10, 1200]), "ip_id": n + 1, "df": 0}
            step = {"in": "wan0", "packet": p}
        step["at"] = int((time.monotonic() - began) * 1000)
        machine.put(step["in"], step["packet"])
        step["out"] = machine.collect()
        steps.append(step)
    counted = machine.counted(not six)
    machine.close()
    return {"seed": seed, "kind": kind.__name__, "six": six, "setup": commands, "steps": steps, "counted": counted}


def main():
    first, count, out = int(argv[1]), int(argv[2]), argv[3]
    with open(out, "w") as file:
        for seed in range(first, first + count):
            print(json.dumps(case(seed)), file=file, flush=True)


main()
