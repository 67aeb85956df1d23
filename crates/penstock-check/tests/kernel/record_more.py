#!/usr/bin/env python3
"""Records where a real Linux puts packets: what `record.py` never makes. IPv6, VLAN devices, translated addresses, ip6tables, chains,
deeper hash tables, bytecode, `flow map`, `ets`, `qfq`, `clsact`, deep extended matches, actions that change what later filters see.

Run it as `record.py`; the form of what it prints is the same. `more.txt` is the beginning of

    python3 record_more.py 400 30 5

on Linux 6.12.117 with iproute2 6.1. Checksums of the packets are 0, so that connections are told not to look at them. Of this machine's own
packets over IPv6, where rules stand, none is sent: a raw socket leaves no transport header that matches find.
"""
import random, socket, struct, subprocess, sys, time

SETS, PACKETS, SEED = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
dice = random.Random(SEED)
TCA_STATS2 = 7


def sh(line):
    return subprocess.run(line, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def ready():
    sh("sysctl -w net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.router_solicitations=0")
    sh("sysctl -w net.ipv6.conf.default.addr_gen_mode=1")
    sh("ip link add eth0 type dummy")
    sh("ip link add eth1 type veth peer name far1")
    sh("ip link add eth2 type veth peer name far2")
    for dev in ("lo", "eth0", "eth1", "eth2", "far1", "far2"):
        sh(f"ip link set {dev} up")
    sh("ip link add link eth0 name eth0.10 type vlan id 10 egress-qos-map 0:0 1:1 2:2 3:3 4:4 5:5 6:6")
    sh("ip link add link eth0 name eth0.99 type vlan id 99 egress-qos-map 0:0 1:1 2:2 3:3 4:4 5:5 6:6")
    for dev in ("eth0.10", "eth0.99"):
        sh(f"ip link set {dev} up")
    sh("ip addr add 192.0.2.1/24 dev eth0")
    sh("ip addr add 198.51.100.1/24 dev eth1")
    sh("ip addr add 203.0.113.1/24 dev eth2")
    sh("ip route add default dev eth0")
    sh("sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0")
    for dev in ("eth0", "eth1", "eth2", "far1", "far2"):
        sh(f"sysctl -w net.ipv4.conf.{dev}.rp_filter=0 net.ipv4.conf.{dev}.accept_local=1")
    sh("ip -6 addr add 2001:db8:f0::1/64 dev eth0 nodad")
    sh("ip -6 route add default dev eth0")
    for dev in ("far1", "far2", "eth0.10", "eth0.99"):
        sh(f"sysctl -w net.ipv6.conf.{dev}.disable_ipv6=1".replace("eth0.", "eth0/"))
    sh("sysctl -w net.netfilter.nf_conntrack_checksum=0")
    time.sleep(20)


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


def forget():
    """Every connection, as `conntrack -F` does."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    sock.bind((0, 0))
    for family in (socket.AF_INET, socket.AF_INET6):
        body = struct.pack("BBH", family, 0, 0)
        sock.send(struct.pack("IHHII", 16 + len(body), 0x102, 5, 1, 0) + body)
        sock.recv(4096)
    sock.close()


def one(*all):
    return dice.choice(all)


def host():
    return f"10.{one(0, 1, 130)}.{one(0, 0, 7)}.{dice.randrange(5)}"


def host6():
    return f"2001:db8:{one('0', '1', 'a0')}::{dice.randrange(4):x}"


V4 = ["match ip src 10.0.0.0/9", "match ip dst 10.1.0.0/16", "match ip dst 10.0.0.0/30", "match ip protocol 6 0xff",
      "match ip protocol 17 0xff", "match ip dport 53 0xffff", "match ip sport 80 0xfff0", "match ip tos 0x10 0x1e",
      "match u32 0 0", "match u8 0x45 0xff at 0", "match u16 0x0000 0xffc0 at 2", "match ip src 10.130.0.1",
      "match ip dsfield 0xb8 0xfc", "match u32 0x0a000001 0xffffffff at 12", "match tcp dst 80 0xffff", "match udp src 53 0xffff",
      "match u16 0x0035 0xffff at nexthdr+2", "match u8 0x50 0xf0 at nexthdr+12", "match ip ihl 5 0xf", "match ip df",
      "match ip firstfrag", "match ip nofrag", "match u8 0x10 0xff at 33", "match u16 0x0050 0xfff0 at 20", "match u8 0x02 0x03 at 19",
      "match icmp type 8 0xff", "match u32 0x00000001 0x00000003 at 16"]
V6 = ["match ip6 src 2001:db8::/48", "match ip6 dst 2001:db8:1::/48", "match ip6 dst 2001:db8:a0::1", "match ip6 protocol 6 0xff",
      "match ip6 protocol 17 0xff", "match ip6 dport 53 0xffff", "match ip6 sport 80 0xfff0", "match ip6 priority 0xb8 0xfc",
      "match u32 0 0", "match u16 0x0000 0xffc0 at 4", "match u8 0x60 0xf0 at 0", "match u32 0x00000002 0x0000000f at 36",
      "match ip6 flowlabel 0 0xfffff", "match u16 0x0035 0xffff at 42", "match u8 6 0xff at 6", "match ip6 src ::/0",
      "match u16 0x0b80 0x0fc0 at 0", "match ip6 protocol 58 0xff"]


def u32(protocol):
    both = V4 + V6 if protocol in ("all", "802.1q") else V6 if protocol == "ipv6" else V4
    return "u32 " + " ".join(dict.fromkeys(one(*both) for _ in range(1 + dice.randrange(3))))


def flower(protocol):
    proto = one("tcp", "udp")
    if protocol == "802.1q":
        return "flower " + one("vlan_id 10", "vlan_id 99", "vlan_prio 3", "vlan_id 10 vlan_prio 5", "vlan_ethtype ipv4 dst_ip 10.1.0.0/16",
                               "vlan_ethtype ipv6", "vlan_id 10 vlan_ethtype ipv4 ip_proto tcp dst_port 80", "",
                               "vlan_ethtype ipv6 ip_proto udp dst_port 53")
    if protocol == "all":
        return "flower"
    ports = [f"ip_proto {proto}", f"ip_proto {proto} dst_port {one(53, 80, 22)}", f"ip_proto {proto} src_port 80",
             f"ip_proto {proto} dst_port 50-79", f"ip_tos {one('0x10', '0xb8/0xfc', '0x12/0x3')}", "ip_proto tcp tcp_flags 0x10/0x12",
             f"ip_proto {proto} src_port 53-80 dst_port 22-53", "ip_proto tcp dst_port 80/0xfff0", "ip_proto udp src_port 53/0xff", ""]
    if protocol == "ipv6":
        return "flower " + one(*ports, "src_ip 2001:db8::/48", f"dst_ip {host6()}", "dst_ip 2001:db8:1::/48 ip_proto udp", "ip_proto icmpv6")
    return "flower " + one(*ports, "src_ip 10.0.0.0/9", "dst_ip 10.1.0.0/16", f"dst_ip {host()} ip_proto {proto}", "ip_flags nofrag",
                           "ip_proto icmp type 8", "ip_proto gre")


def basic():
    def leaf():
        return one("cmp(u8 at 9 layer network eq 6)", "cmp(u16 at 2 layer transport gt 60)", "u32(u32 0x0a000000 0xffff0000 at 12)",
                   "cmp(u8 at 1 layer network eq 0x10)", "meta(fwmark gt 2)", "meta(fwmark mask 0x1 eq 1)", "meta(priority eq 3)",
                   "meta(pkt_len gt 100)", 'nbyte("\\x0a" at 0 layer 1)', "cmp(u16 at 0 layer transport mask 0xff eq 80)",
                   "meta(protocol eq 0x86dd)", "meta(priority lt 2)", "cmp(u32 at 16 layer 1 gt 0x0a010000)",
                   "u32(u16 0x0035 0xffff at nexthdr+2)", "meta(vlan eq 10)", "meta(fwmark shift 1 eq 1)",
                   "cmp(u8 at 0 layer network mask 0xf0 eq 0x60)")
    text = one("", "", "not ") + leaf()
    for _ in range(dice.randrange(3)):
        text += one(" and ", " or ") + one("", "not ") + (leaf() if dice.randrange(3) else f"({leaf()} {one('and', 'or')} {leaf()})")
    return f"basic match '{text}'"


BPF = ["4,40 0 0 12,21 0 1 2048,6 0 0 4294967295,6 0 0 0",
       "6,40 0 0 12,21 0 3 2048,48 0 0 23,21 0 1 6,6 0 0 4294967295,6 0 0 0",
       "3,48 0 0 4294963201,21 0 1 16,6 0 0 4294967295",
       "5,48 0 0 4294963209,21 1 0 17,6 0 0 0,6 0 0 4294967295,6 0 0 0",
       "4,32 0 0 4294963216,84 0 0 3,21 0 1 1,6 0 0 4294967295".replace("4,", "5,", 1) + ",6 0 0 0",
       "2,32 0 0 4294963200,22 0 0 0".replace("2,", "1,", 1).split(",32")[0] + ",6 0 0 4294967295",
       "1,6 0 0 65546", "1,6 0 0 65566"]


def action():
    return one("", "", "", "", "", " action drop", " action skbedit mark 1 continue", " action skbedit mark 2 pipe action continue",
               " action ok", " action continue", " police rate 10gbit burst 10mb drop", " action skbedit mark 0x1/0x1 continue",
               " action skbedit priority 1:20 continue", " action skbedit priority 3 continue",
               " action pedit ex munge ip tos set 0x10 continue", " action pipe", " action gact ok",
               " action goto chain 3", " action skbedit mark 3 reclassify",
               " action police rate 10gbit burst 10mb conform-exceed drop/continue", " action police rate 10gbit burst 10mb conform-exceed drop/pipe action continue",
               " action skbedit inheritdsfield continue")


def filters(parent, classes, chain=None, least=1):
    lines, kinds, protocols = [], {}, {}
    for _ in range(least + dice.randrange(9)):
        prio = 1 + dice.randrange(7)
        kind = kinds.setdefault(prio, one("u32", "u32", "u32", "fw", "flower", "flower", "basic", "basic", "bpf" if dice.randrange(6) == 0 else "fw", "matchall" if prio > 5 else "u32", "flow" if prio > 4 else "basic"))
        protocol = protocols.setdefault(prio, one("ip", "ip", "ip", "ipv6", "ipv6", "all", "802.1q"))
        if kind in ("basic", "bpf", "flow") and dice.randrange(2):
            protocol = protocols[prio] = one("ip", "all")
        flow = one(f"flow map key {one('mark', 'priority', 'dst', 'src', 'proto', 'proto-dst')} {one('and 0x3', 'and 0x1', 'rshift 1', 'minus 10.0.0.0' , 'addend 1', '')}"
                   f" {one('divisor 4', '', 'divisor 2')} baseclass {one(*classes)}", f"flow map key mark and 0x3 divisor 3 baseclass {classes[0]}")
        what = {"u32": lambda: u32(protocol) + f" classid {one(*classes)}",
                "fw": lambda: f"handle {one('1', '2', '3', '0x1/0x1', '0x2/0x3')} fw classid {one(*classes)}", "flower": lambda: flower(protocol) + f" classid {one(*classes)}",
                "basic": lambda: basic() + f" classid {one(*classes)}", "matchall": lambda: f"matchall classid {one(*classes)}",
                "bpf": lambda: f"bpf bytecode '{one(*BPF)}' classid {one(*classes)}", "flow": lambda: flow}[kind]()
        act = "" if kind == "flow" else action()
        if chain is not None and "goto chain" in act:
            act = ""
        at = "" if chain is None else f" chain {chain}"
        lines.append(f"tc filter add dev eth0 {parent} {'' if chain is None else at.strip() + ' '}protocol {protocol} prio {prio} {what}{act}".replace("  ", " "))
    return lines


def chained(parent, classes):
    lines = filters(parent, classes)
    if any("goto chain 3" in line for line in lines):
        return filters(parent, classes, chain=3) + lines
    return lines


def table(classes, base="tc filter add dev eth0 parent 1: protocol ip prio 8"):
    divisor = one(4, 16, 256)
    lines = [f"{base} handle 2: u32 divisor {divisor}"]
    deep = dice.randrange(2)
    if deep:
        lines.append(f"{base} handle 3: u32 divisor 8")
        for _ in range(1 + dice.randrange(5)):
            lines.append(f"{base} u32 ht 3:{dice.randrange(8):x}: {one('match u32 0 0', 'match tcp dst 80 0xffff', 'match ip src 10.0.0.0/9', 'match ip protocol 6 0xff')} "
                         f"classid {one(*classes)}{one('', '', ' action drop', ' action continue')}")
    for _ in range(1 + dice.randrange(8)):
        what = one("match ip src 10.0.0.0/9", "match ip protocol 17 0xff", "match u32 0 0", "match tcp dst 80 0xffff",
                   "match udp src 53 0xffff", "match u16 0x35 0xffff at nexthdr+0")
        lines.append(f"{base} u32 ht 2:{dice.randrange(min(divisor, 6)):x}: {what} classid {one(*classes)}{one('', '', ' action drop')}")
    if deep:
        for bucket in range(min(divisor, 4)):
            if dice.randrange(2):
                lines.append(f"{base} u32 ht 2:{bucket:x}: match ip protocol {one(6, 17)} 0xff hashkey mask {one('0x7', '0x700', '0x70000000')} at {one(12, 16, 20)} link 3:"
                             f"{one('', ' offset at 0 mask 0x0f00 shift 6 eat')}")
    if dice.randrange(3) == 0:
        lines.append(f"{base} u32 ht 2: sample ip dst 10.1.7.3 match ip dst 10.1.7.3 classid {one(*classes)}")
    offset = one("", " offset at 0 mask 0x0f00 shift 6", " offset at 0 mask 0x0f00 shift 6 eat", " offset plus 20", " offset plus 8 eat")
    key = one("0x3 at 16", "0xff at 16", "0xff at 12", "0xff00 at 16", "0xff0000 at 8", "0xffff at 20", "0x00ff0000 at 16")
    lines.append(f"{base} u32 ht 800:: match ip dst 10.0.0.0/8 hashkey mask {key} link 2:{offset}{one('', ' classid 1:30')}")
    return lines


def tree():
    kind = dice.randrange(8)
    if kind == 0:
        root = one("prio bands 4", "ets bands 4 strict 2 quanta 3000 1500")
        lines = [f"tc qdisc add dev eth0 root handle 1: {root} priomap {' '.join(str(dice.randrange(4)) for _ in range(16))}"]
        lines += chained("parent 1:", ["1:1", "1:2", "1:3", "1:4", "1:9"])
        if dice.randrange(2):
            lines += table(["1:1", "1:2"])
        return lines
    if kind == 1:
        lines = [f"tc qdisc add dev eth0 root handle 1: hfsc default {one(30, 10, 77)}"]
        lines += [f"tc class add dev eth0 parent {p} classid {c} hfsc sc rate 1gbit" for p, c in
                  (("1:", "1:1"), ("1:1", "1:10"), ("1:1", "1:20"), ("1:20", "1:21"), ("1:1", "1:30"))]
        lines += chained("parent 1:", ["1:10", "1:20", "1:21", "1:30", "1:99"])
        if dice.randrange(2):
            lines += filters("parent 1:20", ["1:21", "1:10"])
        return lines
    if kind in (2, 3):
        kind = one("drr", "qfq")
        lines = [f"tc qdisc add dev eth0 root handle 1: {kind}"]
        extra = " weight 1 maxpkt 2048" if kind == "qfq" else ""
        lines += [f"tc class add dev eth0 parent 1: classid {c} {kind}{extra}" for c in ("1:10", "1:20", "1:30")]
        return lines + chained("parent 1:", ["1:10", "1:20", "1:30", "1:99"]) + one([], table(["1:10", "1:20"]))
    lines = [f"tc qdisc add dev eth0 root handle 1: htb default {one(0, 30, 1, 77, 20)}"]
    for where in ("parent 1: classid 1:1", "parent 1:1 classid 1:10", "parent 1:1 classid 1:20", "parent 1:20 classid 1:21",
                  "parent 1:20 classid 1:22", "parent 1:1 classid 1:30"):
        lines.append(f"tc class add dev eth0 {where} htb rate 1gbit quantum 1514")
    lines += chained("parent 1:", ["1:10", "1:20", "1:21", "1:30", "1:1", "1:0", "1:99"])
    if dice.randrange(2):
        lines += filters("parent 1:20", ["1:21", "1:22", "1:10"])
    if dice.randrange(2):
        lines += table(["1:10", "1:21", "1:22", "1:20"])
    if dice.randrange(3) == 0:
        lines.append("tc qdisc add dev eth0 clsact")
        egress = filters("egress", ["1:10", "1:20", "1:22"])
        lines += [line.replace(" goto chain 3", " continue") for line in egress]
    return lines


def rules(six):
    tables = "ip6tables" if six else "iptables"
    lines = [f"{tables} -t mangle -N S"]
    nets = ("2001:db8::/48", "2001:db8:1::/48") if six else ("10.0.0.0/9", "10.1.0.0/16")
    for _ in range(2 + dice.randrange(8)):
        what = one("-p tcp", "-p udp", "-p tcp --dport 80", "-p udp --dport 53", f"-s {nets[0]}", f"! -s {nets[0]}", f"-d {nets[1]}",
                   "-p tcp -m multiport --dports 22,53,80", "-m dscp --dscp 46", "-m tos --tos 0x10", "-m length --length 0:100",
                   "-m mark --mark 0", "-m mark --mark 2", "-m mark ! --mark 0x1/0x1", "! -p tcp", "-p tcp --sport 80:81",
                   "-p tcp --tcp-flags SYN,ACK ACK", "", "-p tcp ! --dport 80", "-p udp -m multiport ! --sports 53,80",
                   "-m dscp ! --dscp 0", "-p tcp -m multiport --ports 80,4000:5000", "-m length ! --length 100:1400", f"! -d {nets[1]}",
                   "-p icmp" if not six else "-p icmpv6", "-p gre", "-m connmark --mark 0")
        then = one("-j MARK --set-mark 1", "-j MARK --set-mark 2", "-j MARK --set-mark 3", "-j MARK --set-xmark 0x1/0x1",
                   "-j ACCEPT", "-j RETURN", "-j S", "-j S", "-j TOS --set-tos 0x10", "-j CLASSIFY --set-class 1:10", "-j DROP",
                   "-j MARK --set-mark 1", "-j MARK --or-mark 2", "-j MARK --and-mark 1", "-j MARK --xor-mark 3", "-j DSCP --set-dscp 46",
                   "-g S", "-j MARK --set-mark 0x2/0x3", "-j CONNMARK --save-mark", "-j CONNMARK --restore-mark", "-j TOS --set-tos 0x8/0x1c",
                   "-j CONNMARK --set-mark 3", "-j CLASSIFY --set-class 1:20")
        chain = one("PREROUTING", "PREROUTING", "FORWARD", "POSTROUTING", "OUTPUT", "S", "S")
        if then in ("-j S", "-g S") and chain == "S":
            continue
        if then == "-j DROP" and not what:
            continue
        if chain == "PREROUTING" and dice.randrange(2):
            what = f"-i {one('eth1', 'eth2', 'eth+')} {what}"
        elif chain in ("FORWARD", "POSTROUTING") and dice.randrange(4) == 0:
            what = f"-o {one('eth0', 'eth1', 'eth+')} {what}"
        lines.append(f"{tables} -t mangle -A {chain} {what} {then}".replace("  ", " "))
    if not six and dice.randrange(3) == 0:
        nat = one("-j SNAT --to-source 10.0.0.1", "-j SNAT --to-source 192.0.2.1", "-s 10.0.0.0/9 -j SNAT --to-source 10.130.0.1",
                  "-p tcp -j SNAT --to-source 10.1.0.1")
        lines.append(f"iptables -t nat -A POSTROUTING -o eth0 {nat}")
    return lines


def head_sum(head):
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack("!H", 0xFFFF ^ total) + head[12:]


def bytes_of(p):
    six, proto, src, dst, sport, dport, tos, size = p
    head = 40 if six else 20
    if proto == 6:
        l4 = struct.pack("!HHIIBBHHH", sport, dport, 0, 0, 0x50, 0x10, 0, 0, 0)
    elif proto == 17:
        l4 = struct.pack("!HHHH", sport, dport, size - head, 0)
    elif proto in (1, 58):
        l4 = struct.pack("!BBHHH", dport >> 8, dport & 255, 0, 0, 0)
    else:
        l4 = b""
    l4 = l4.ljust(size - head, b"\0")
    if six:
        return struct.pack("!IHBB", 0x60000000 | tos << 20, size - 40, proto, 64) + socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, dst) + l4
    return head_sum(struct.pack("!BBHHHBBH4s4s", 0x45, tos, size, 0, 0, 64, proto, 0, socket.inet_aton(src), socket.inet_aton(dst))) + l4


def packet(six, nat):
    proto = one(6, 17, 6, 47, 58 if six else 1)
    least = 40 if six else 20
    size = least + {6: one(20, 44, 1440), 17: one(8, 10, 44, 1440)}.get(proto, one(8, 44, 1440))
    ports = (one(80, 81, 53, 4000), one(53, 80, 22)) if proto in (6, 17) else (0, 0)
    if proto in (1, 58):
        ports = (0, (8 if proto == 1 else 128) << 8)
    where = (host6(), host6()) if six else (host(), host())
    return (six, proto, *where, *ports, one(0, 0x10, 0xB8, 0x12), min(size, 1500))


def main():
    ready()
    classes = Classes()
    direct = {}
    for dev in ("eth0", "eth0.10", "eth0.99"):
        for kind in (0x0800, 0x86DD):
            direct[dev, kind] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            direct[dev, kind].bind((dev, kind))
    far = {}
    for n in (1, 2):
        for kind in (0x0800, 0x86DD):
            far[n, kind] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            far[n, kind].bind((f"far{n}", kind))
    local = {False: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW),
             True: socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)}
    macs = {n: mac(f"eth{n}") for n in (1, 2)}
    for _ in range(SETS):
        sh("tc qdisc del dev eth0 root; tc qdisc del dev eth0 clsact")
        for t in ("iptables", "ip6tables"):
            sh(f"{t} -t mangle -F; {t} -t mangle -X; {t} -t nat -F")
        wall = dice.randrange(2) == 0
        walls = (rules(False) + one([], rules(True))) if wall else []
        kept = [line for line in tree() + walls if sh(line)]
        nat = any("-t nat" in line for line in kept)
        # What stands at the root is not one of these.
        inner = {h for h in ("1:1", "1:20") if any(f"parent {h} " in k and "class add" in k for k in kept)}
        print("set")
        print("\n".join(kept), flush=True)
        for _ in range(PACKETS):
            if wall:
                forget()
            six = dice.randrange(3) == 0
            kind = 0x86DD if six else 0x0800
            p = packet(six, nat)
            raw = bytes_of(p)
            before = classes.counts()
            name = {6: "tcp", 17: "udp"}.get(p[1], p[1])
            ends = [f"[{p[2]}]:{p[4]}", f"[{p[3]}]:{p[5]}"] if six else [f"{p[2]}:{p[4]}", f"{p[3]}:{p[5]}"]
            text = f"{name} {ends[0]} > {ends[1]} tos {p[6]:#x} len {p[7]}"
            if wall and dice.randrange(3):
                n = one(1, 2)
                far[n, kind].send(macs[n] + b"\2\0\0\0\0\1" + struct.pack("!H", kind) + raw)
                text += f" in eth{n}"
            else:
                prio, mark = dice.randrange(7), (0 if wall else dice.randrange(5))
                if wall and six:
                    continue
                dev = "eth0" if wall else one("eth0", "eth0", "eth0.10", "eth0.99")
                sock = local[six] if wall else direct[dev, kind]
                sock.setsockopt(socket.SOL_SOCKET, 12, prio)
                sock.setsockopt(socket.SOL_SOCKET, 36, mark)
                try:
                    if wall:
                        sock.sendto(raw, (p[3], 0))
                    else:
                        sock.send(b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + struct.pack("!H", kind) + raw)
                except OSError:
                    pass
                if dev != "eth0":
                    text += f" vlan {dev[5:]}" + (f" pcp {prio}" if prio else "")
                text += (f" mark {mark}" if mark else "") + (f" prio {prio}" if prio else "")
            after = classes.counts()
            went = [h for h in after if after[h] > before.get(h, 0)]
            went = [f"{h >> 16:x}:{h & 0xFFFF:x}" for h in went]
            went = [h for h in went if h not in inner and not h.endswith(":0")]
            print(f"{text} = {went[0] if went else '-'}")
        sys.stdout.flush()


main()
