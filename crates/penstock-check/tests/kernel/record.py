#!/usr/bin/env python3
"""Records where a real Linux puts packets: random sets of filters and rules, random packets, the class whose counter moved.

Run it as root inside a throw-away kernel with every qdisc, classifier and iptables:

    python3 record.py SETS PACKETS SEED > recorded.txt

Each set begins with a line `set`; the commands that were taken follow; then a line a packet: the packet as `penstock explain`
reads it, ` prio N` where it has a priority, and behind ` = ` the leaf class that counted it, `-` for none.
"""
import random, socket, struct, subprocess, sys

SETS, PACKETS, SEED = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
dice = random.Random(SEED)
TCA_STATS2 = 7


def sh(line):
    return subprocess.run(line, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def ready():
    sh("ip link add eth0 type dummy")
    sh("ip link add eth1 type veth peer name far1")
    sh("ip link add eth2 type veth peer name far2")
    for dev in ("lo", "eth0", "eth1", "eth2", "far1", "far2"):
        sh(f"ip link set {dev} up")
    sh("ip addr add 192.0.2.1/24 dev eth0")
    sh("ip addr add 198.51.100.1/24 dev eth1")
    sh("ip addr add 203.0.113.1/24 dev eth2")
    sh("ip route add default dev eth0")
    sh("sysctl -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0")
    for dev in ("eth0", "eth1", "eth2", "far1", "far2"):
        sh(f"sysctl -w net.ipv4.conf.{dev}.rp_filter=0 net.ipv4.conf.{dev}.accept_local=1")
        sh(f"sysctl -w net.ipv6.conf.{dev}.disable_ipv6=1")


def mac(dev):
    return bytes.fromhex(open(f"/sys/class/net/{dev}/address").read().strip().replace(":", ""))


def attrs(data):
    out, at = {}, 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("HH", data, at)
        if size < 4:
            break
        out[kind & 0x3FFF] = data[at + 4:at + size]
        at += (size + 3) & ~3
    return out


class Classes:
    def __init__(self):
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.sock.bind((0, 0))
        self.index = socket.if_nametoindex("eth0")

    def counts(self):
        body = struct.pack("BBHiIII", 0, 0, 0, self.index, 0, 0, 0)
        self.sock.send(struct.pack("IHHII", 16 + len(body), 42, 0x301, 1, 0) + body)
        out = {}
        while True:
            data = self.sock.recv(1 << 20)
            at = 0
            while at + 16 <= len(data):
                size, kind = struct.unpack_from("IH", data, at)
                if kind == 3:
                    return out
                if kind == 40:
                    handle = struct.unpack_from("I", data, at + 16 + 8)[0]
                    a = attrs(data[at + 36:at + size])
                    s = attrs(a.get(TCA_STATS2, b""))
                    sent = struct.unpack_from("QI", s[1])[1] if 1 in s else 0
                    wait = struct.unpack_from("I", s[3])[0] if 3 in s else 0
                    out[handle] = sent + wait
                at += (size + 3) & ~3


def one(*all):
    return dice.choice(all)


def host():
    return f"10.{one(0, 1, 130)}.0.{dice.randrange(3)}"


def u32_match():
    return one("match ip src 10.0.0.0/9", "match ip dst 10.1.0.0/16", "match ip dst 10.0.0.0/30", "match ip protocol 6 0xff",
               "match ip protocol 17 0xff", "match ip dport 53 0xffff", "match ip sport 80 0xfff0", "match ip tos 0x10 0xff",
               "match u32 0 0", "match u8 0x05 0x0f at 0", "match u16 0x0000 0xffc0 at 2", "match ip src 10.130.0.1",
               "match u8 0x10 0xff at 33", "match ip dsfield 0xb8 0xfc", "match u32 0x0a000001 0xffffffff at 12")


def flower():
    proto = one("tcp", "udp")
    return one(f"ip_proto {proto}", f"ip_proto {proto} dst_port {one(53, 80, 22)}", f"ip_proto {proto} src_port 80",
               "src_ip 10.0.0.0/9", "dst_ip 10.1.0.0/16", f"ip_tos {one('0x10', '0xb8/0xfc')}", f"ip_proto {proto} dst_port 50-79",
               f"dst_ip {host()} ip_proto {proto}", "ip_proto tcp tcp_flags 0x10/0x10")


def basic():
    return one("'cmp(u8 at 9 layer network eq 6)'", "'cmp(u16 at 2 layer transport gt 60)'",
               "'not u32(u32 0x0a000000 0xffff0000 at 12)'", "'cmp(u8 at 1 layer network eq 0x10) or meta(fwmark gt 2)'",
               "'cmp(u8 at 9 layer network eq 17) and not (cmp(u16 at 2 layer transport lt 54) or meta(priority eq 3))'",
               "'meta(pkt_len gt 100)'", "'nbyte(\"\\x0a\" at 0 layer 1)'")


def action():
    return one("", "", "", "", " action drop", " action skbedit mark 1 continue", " action skbedit mark 2 pipe action continue",
               " action ok", " action continue", " police rate 10gbit burst 10mb drop")


def filters(parent, classes):
    lines, kinds = [], {}
    for _ in range(1 + dice.randrange(9)):
        prio = 1 + dice.randrange(6)
        kind = kinds.setdefault(prio, one("u32", "u32", "fw", "flower", "basic", "matchall" if prio > 4 else "u32"))
        what = {"u32": lambda: "u32 " + " ".join(dict.fromkeys(u32_match() for _ in range(1 + dice.randrange(2)))),
                "fw": lambda: f"handle {1 + dice.randrange(3)} fw", "flower": lambda: "flower " + flower(),
                "basic": lambda: "basic match " + basic(), "matchall": lambda: "matchall"}[kind]()
        lines.append(f"tc filter add dev eth0 parent {parent} protocol ip prio {prio} {what} classid {one(*classes)}{action()}")
    return lines


def table(classes):
    base = "tc filter add dev eth0 parent 1: protocol ip prio 7"
    lines = [f"{base} handle 2: u32 divisor 4"]
    for _ in range(1 + dice.randrange(6)):
        what = one("match ip src 10.0.0.0/9", "match ip protocol 17 0xff", "match u32 0 0", "match tcp dst 80 0xffff",
                   "match udp src 53 0xffff")
        lines.append(f"{base} u32 ht 2:{dice.randrange(4):x}: {what} classid {one(*classes)}{one('', '', ' action drop')}")
    offset = one("", " offset at 0 mask 0x0f00 shift 6", " offset at 0 mask 0x0f00 shift 6 eat", " offset plus 20")
    lines.append(f"{base} u32 ht 800:: match ip dst 10.0.0.0/8 hashkey mask 0x3 at 16 link 2:{offset}{one('', ' classid 1:30')}")
    return lines


def tree():
    kind = dice.randrange(6)
    if kind == 0:
        lines = [f"tc qdisc add dev eth0 root handle 1: prio bands 4 priomap {' '.join(str(dice.randrange(4)) for _ in range(16))}"]
        lines += filters("1:", ["1:1", "1:2", "1:3", "1:4", "1:9"])
        if dice.randrange(2):
            lines += table(["1:1", "1:2"])
        return lines
    if kind == 1:
        lines = [f"tc qdisc add dev eth0 root handle 1: hfsc default {one(30, 10, 77)}"]
        lines += [f"tc class add dev eth0 parent {p} classid {c} hfsc sc rate 1gbit" for p, c in
                  (("1:", "1:1"), ("1:1", "1:10"), ("1:1", "1:20"), ("1:1", "1:30"))]
        return lines + filters("1:", ["1:10", "1:20", "1:30", "1:99"])
    if kind == 2:
        lines = ["tc qdisc add dev eth0 root handle 1: drr"]
        lines += [f"tc class add dev eth0 parent 1: classid {c} drr" for c in ("1:10", "1:20", "1:30")]
        return lines + filters("1:", ["1:10", "1:20", "1:30", "1:99"]) + one([], table(["1:10", "1:20"]))
    lines = [f"tc qdisc add dev eth0 root handle 1: htb default {one(0, 30, 1, 77)}"]
    for where in ("parent 1: classid 1:1", "parent 1:1 classid 1:10", "parent 1:1 classid 1:20", "parent 1:20 classid 1:21",
                  "parent 1:20 classid 1:22", "parent 1:1 classid 1:30"):
        lines.append(f"tc class add dev eth0 {where} htb rate 1gbit quantum 1514")
    lines += filters("1:", ["1:10", "1:20", "1:21", "1:30", "1:1", "1:0", "1:99"])
    if dice.randrange(2):
        lines += filters("1:20", ["1:21", "1:22", "1:10"])
    if dice.randrange(2):
        lines += table(["1:10", "1:21", "1:22", "1:20"])
    return lines


def rules():
    lines = ["iptables -t mangle -N S"]
    for _ in range(2 + dice.randrange(8)):
        what = one("-p tcp", "-p udp", "-p tcp --dport 80", "-p udp --dport 53", "-s 10.0.0.0/9", "! -s 10.0.0.0/9", "-d 10.1.0.0/16",
                   "-p tcp -m multiport --dports 22,53,80", "-m dscp --dscp 46", "-m tos --tos 0x10", "-m length --length 0:100",
                   "-m mark --mark 0", "-m mark --mark 2", "! -p tcp", "-p tcp --sport 80:81", "-p tcp --tcp-flags SYN,ACK ACK", "")
        then = one("-j MARK --set-mark 1", "-j MARK --set-mark 2", "-j MARK --set-mark 3", "-j MARK --set-xmark 0x1/0x1",
                   "-j ACCEPT", "-j RETURN", "-j S", "-j S", "-j TOS --set-tos 0x10", "-j CLASSIFY --set-class 1:10", "-j DROP",
                   "-j MARK --set-mark 1")
        chain = one("PREROUTING", "PREROUTING", "FORWARD", "POSTROUTING", "OUTPUT", "S", "S")
        if then == "-j S" and chain == "S":
            continue
        if then == "-j DROP" and not what:
            continue
        if chain == "PREROUTING" and dice.randrange(2):
            what = f"-i {one('eth1', 'eth2', 'eth+')} {what}"
        lines.append(f"iptables -t mangle -A {chain} {what} {then}".replace("  ", " "))
    return lines


def ip_packet(p):
    proto, src, dst, sport, dport, tos, size = p
    if proto == 6:
        l4 = struct.pack("!HHIIBBHHH", sport, dport, 0, 0, 0x50, 0x10, 0, 0, 0)
    elif proto == 17:
        l4 = struct.pack("!HHHH", sport, dport, size - 20, 0)
    else:
        l4 = b""
    l4 = l4.ljust(size - 20, b"\0")
    head = struct.pack("!BBHHHBBH4s4s", 0x45, tos, size, 0, 0, 64, proto, 0, socket.inet_aton(src), socket.inet_aton(dst))
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack("!H", 0xFFFF ^ total) + head[12:] + l4


def main():
    ready()
    classes = Classes()
    direct = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    direct.bind(("eth0", 0x0800))
    far = {}
    for n in (1, 2):
        far[n] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        far[n].bind((f"far{n}", 0x0800))
    local = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    macs = {n: mac(f"eth{n}") for n in (1, 2)}
    for _ in range(SETS):
        sh("tc qdisc del dev eth0 root")
        sh("iptables -t mangle -F; iptables -t mangle -X")
        wall = dice.randrange(2) == 0
        kept = [line for line in tree() + (rules() if wall else []) if sh(line)]
        print("set")
        print("\n".join(kept))
        for _ in range(PACKETS):
            proto = one(6, 17, 6, 47)
            size = one(40, 64, 1500) if proto == 6 else one(28, 30, 64, 1500)
            ports = (one(80, 81, 53, 4000), one(53, 80, 22)) if proto != 47 else (0, 0)
            p = (proto, host(), host(), *ports, one(0, 0x10, 0xB8, 0x12), size)
            before = classes.counts()
            text = f"{ {6: 'tcp', 17: 'udp'}.get(proto, proto)} {p[1]}:{p[3]} > {p[2]}:{p[4]} tos {p[5]:#x} len {size}"
            if wall and dice.randrange(3):
                n = one(1, 2)
                far[n].send(macs[n] + b"\2\0\0\0\0\1" + b"\x08\0" + ip_packet(p))
                text += f" in eth{n}"
            else:
                prio, mark = dice.randrange(7), (0 if wall else dice.randrange(5))
                sock = local if wall else direct
                sock.setsockopt(socket.SOL_SOCKET, 12, prio)
                sock.setsockopt(socket.SOL_SOCKET, 36, mark)
                try:
                    if wall:
                        sock.sendto(ip_packet(p), (p[2], 0))
                    else:
                        sock.send(b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + b"\x08\0" + ip_packet(p))
                except OSError:
                    pass
                text += (f" mark {mark}" if mark else "") + (f" prio {prio}" if prio else "")
            after = classes.counts()
            inner = {"1:1", "1:20"} if any("htb" in k for k in kept) else ({"1:1"} if any("hfsc" in k for k in kept) else set())
            went = [h for h in after if after[h] > before.get(h, 0)]
            went = [f"{h >> 16:x}:{h & 0xFFFF:x}" for h in went]
            went = [h for h in went if h not in inner and not h.endswith(":0")]
            print(f"{text} = {went[0] if went else '-'}")


main()
