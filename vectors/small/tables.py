#!/usr/bin/env python3
"""Records what a real machine says of its smaller tables: random commands of `ip neigh`, `ip maddr`, `ip addrlabel`, `ip netconf`, `ip ntable`, `ip token` and
`ip tcp_metrics`, of `ipset`, and of `conntrack`, with refused ones among them, and what these show then.

    tables.py FIRST COUNT OUT.jsonl

Seeds: 1 to 99 neighbours, 101 to 199 groups, 201 to 299 labels and settings, 301 to 399 sets, 401 to 499 connections, 501 to 599 listings of sockets, of
which there are none. Each case in a network namespace of its own.
Run it in a kernel of one's own (`run-in-kernel --engine uml`; connections with `--engine sim`): it wants ipv6, all types of sets and nf_conntrack with zones. Devices: d0 and d1 (dummy), v0 and v1 (a veth
pair), whose addresses are set.
"""
import json
import random
import shlex
import subprocess
import sys
import time

BEGIN = [
    "sysctl -qw net.ipv6.conf.default.accept_dad=0",
    "ip link add d0 address 02:00:00:00:00:01 type dummy",
    "ip link add d1 address 02:00:00:00:00:02 type dummy",
    "ip link add v0 address 02:00:00:00:00:03 type veth peer name v1 address 02:00:00:00:00:04",
    "ip link set v0 addrgenmode none",
    "ip link set v1 addrgenmode none",
    "ip link set d0 up",
]
DEV = ["d0", "d0", "d0", "d1", "v0", "lo", "nosuch"]


def neighbours(r):
    four = ["10.0.0.5", "10.0.0.6", "10.0.1.7", "224.1.1.1", "10.0.0", "fd00::5x"]
    six = ["fd00::5", "fd00::6", "fe80::7", "ff02::5", "::1"]
    states = ["permanent", "reachable", "noarp", "none", "stale", "incomplete", "permanent", "stale", "failed", "perm", "0x80", "sleepy", "0x100", "all"]

    def address():
        return r.choice(four[:4] if r.random() < 0.9 else four) if r.random() < 0.6 else r.choice(six)

    def change():
        verb = r.choice(["add", "add", "add", "replace", "replace", "change", "del", "append", "get"])
        words = [verb]
        if r.random() < 0.12:
            words.append("proxy")
        words.append(address())
        if r.random() < 0.75 and verb != "get":
            words += ["lladdr", r.choice(["02:00:00:00:01:0" + r.choice("123"), "02:00:00:00:01:01", "2:0:0:0:1:3", "02:00:00:00:01", "zz", "10.0.0.1", "null"]
                                         if r.random() < 0.3 else ["02:00:00:00:01:0" + r.choice("123")])]
        if r.random() < 0.6 and verb != "get":
            words += ["nud", r.choice(states[:9] if r.random() < 0.9 else states)]
        for flag, p in ("router", 0.12), ("extern_learn", 0.12), ("protocol static", 0.08), ("protocol 99", 0.05), ("protocol foo", 0.03), ("vrf", 0.01):
            if r.random() < p:
                words.append(flag)
        if r.random() < 0.95:
            words += ["dev", r.choice(DEV if r.random() < 0.5 else DEV[:4])]
        if r.random() < 0.04:
            words += ["dev", "d1"]
        return "ip " + r.choice(["", "", "", "-4 ", "-6 "] if r.random() < 0.3 else [""]) + "neigh " + " ".join(words)

    def show():
        option = r.choice(["", "", "-j ", "-4 ", "-6 ", "-j -p ", "-d ", "-o "])
        what = r.choice(["", "", "show", "show dev d0", "show nud all", "show nud permanent", "show nud none", "show nud noarp nud stale", "show proxy", "show to 10.0.0.0/24",
                         "show to fd00::/64", "show 10.0.0.5", "show dev nosuch", "show nud bad", "list unused", "show dev d0 nud all", "show proxy dev d0",
                         "show master br0", "show vrf red", "show protocol static", "show protocol 99", "show to 10.0.0.6 dev d0", "show dev d0 dev d1", "show to"])
        return "ip " + option + "neigh " + what

    lines = ["ip addr add 10.0.0.1/24 dev d0", "ip addr add fd00::1/64 dev d0 nodad"]
    for _ in range(r.randrange(18, 30)):
        lines.append(change())
        if r.random() < 0.06:
            lines.append("ip neigh flush " + r.choice(["dev d0", "all", "", "nud permanent", "to 10.0.0.0/24", "dev nosuch", "dev d0 nud stale", "proxy dev d0"]))
        if r.random() < 0.04:
            lines += ["ip link set d0 down", "ip -j neigh show nud all", "ip link set d0 up"]
        if r.random() < 0.7:
            lines.append(show())
    return lines + ["ip neigh show nud all", "ip -j -p neigh show nud all", "ip -6 neigh", "ip neigh show proxy", "ip -6 neigh show proxy"]


def groups(r):
    show = ["ip maddr", "ip maddr", "ip maddr show dev d0", "ip -j maddr", "ip -j -p maddr show v0", "ip -4 maddr", "ip -6 maddr show dev v0", "ip -0 maddr", "ip -o maddr",
            "ip maddr show dev nosuch", "ip maddr show d0 d1", "ip maddr show dev", "cat /proc/net/dev_mcast", "cat /proc/net/igmp", "cat /proc/net/igmp6", "ip -o -j maddr",
            "ip -0 -j maddr show br0"]
    change = [
        "ip link set v0 up", "ip link set v1 up", "ip link set v0 down", "ip link set d0 down", "ip link set d0 up", "ip link set d1 up", "ip link set lo up",
        "ip addr add fd00::5/64 dev v0", "ip addr add fd00::6/64 dev v0", "ip addr add fd00:1::5/64 dev v0", "ip addr del fd00::5/64 dev v0", "ip addr add 10.0.0.1/24 dev v0",
        "ip addr add fd00::5/64 dev v1", "ip addr add fd00::9/64 dev d0", "ip addr flush dev v0", "ip link set v1 addrgenmode eui64",
        "ip addr add 224.5.5.5/32 dev d0 autojoin", "ip addr del 224.5.5.5/32 dev d0", "ip addr add ff05::5/128 dev v0 autojoin", "ip addr del ff05::5/128 dev v0",
        "ip addr add 10.0.0.9/32 dev d0 autojoin", "ip addr add fd00::8/128 dev v0 autojoin",
        "ip maddr add 01:00:5e:01:02:03 dev d0", "ip maddr add 33:33:00:00:00:01 dev d0", "ip maddr add 01:00:5e:00:00:01 dev v0", "ip maddr del 01:00:5e:01:02:03 dev d0",
        "ip maddr del 33:33:00:00:00:01 dev d0", "ip maddr del 01:00:5e:00:00:01 dev v0", "ip maddr add 224.1.1.1 dev d0", "ip maddr add 01:00:5e:01 dev d0",
        "ip maddr add 01:00:5e:01:02:03 dev lo", "ip maddr add 01:00:5e:01:02:03 dev nosuch", "ip maddr add 01:00:5e:01:02:03", "ip maddr add zz dev d0", "ip maddr del dev d0",
        "ip maddr add address 01:00:5e:01:02:04 dev d0", "ip maddr add 01:00:5e:01:02:04 01:00:5e:01:02:05 dev d0", "ip maddr foo", "ip -6 maddr add 33:33:00:00:00:09 dev d0",
        "ip maddr add 01:00:5e:7f:02:03 dev v0.5", "ip maddr add 01:00:5e:7f:02:03 dev d0 dev d1",
        "ip link add link v0 name v0.5 address 02:00:00:00:00:05 type vlan id 5", "ip link set v0.5 up", "ip link set v0.5 down", "ip link del v0.5", "ip addr add fd00:5::1/64 dev v0.5",
        "ip link add br0 address 02:00:00:00:00:09 type bridge", "ip link set br0 up", "ip link set br0 down", "ip link set d1 master br0", "ip link del br0",
        "ip link add link v0 name mv address 02:00:00:00:00:06 type macvlan", "ip link set mv up", "ip link del mv",
        "sysctl -qw net.ipv6.conf.all.forwarding=1", "sysctl -qw net.ipv6.conf.all.forwarding=0", "sysctl -qw net.ipv6.conf.v0.forwarding=1",
        "sysctl -qw net.ipv6.conf.v0.disable_ipv6=1", "sysctl -qw net.ipv6.conf.v0.disable_ipv6=0", "ip link set v0 mtu 1000", "ip link set v0 mtu 1500",
        "ip link add ifb0 type ifb", "ip link set ifb0 up", "ip maddr add 01:00:5e:01:02:03 dev ifb0",
    ]
    lines = ["ip link set v0 addrgenmode eui64"]
    for _ in range(r.randrange(18, 26)):
        lines.append(r.choice(change))
        if r.random() < 0.8:
            lines.append(r.choice(show))
    return lines + ["ip maddr", "ip -j maddr", "cat /proc/net/dev_mcast", "cat /proc/net/igmp", "cat /proc/net/igmp6"]


def settings(r):
    def label():
        words = [r.choice(["add", "add", "add", "del", "del"])]
        if r.random() < 0.95:
            words += ["prefix", r.choice(["fd00::/16", "fd00::1/16", "2001:db8::/32", "::/0", "::1/128", "::ffff:1.2.3.4/96", "::ffff:1.2.3.4/128", "::7.7.7.7/96", "fc00::/7", "10.0.0.0/8",
                                          "default", "fd00::/16", "2001:db8::/129", "foo", "::1.2.3.4/112"])]
        if r.random() < 0.3:
            words += ["dev", r.choice(["d0", "d1", "nosuch"])]
        if r.random() < 0.93:
            words += ["label", r.choice(["9", "10", "0x20", "0xffffffff", "foo", "99", "0"])]
        if r.random() < 0.05:
            words.append("bogus")
        return "ip " + r.choice(["", "", "", "", "-6 ", "-4 "]) + "addrlabel " + " ".join(words)

    def change():
        return r.choice([
            label, label, label,
            lambda: "ip addrlabel " + r.choice(["flush", "flush x", "show x", "foo", "list"]),
            lambda: "sysctl -qw net.ipv4.conf." + r.choice(["d0", "all", "default", "v0"]) + "." + r.choice(["forwarding", "proxy_arp", "ignore_routes_with_linkdown"]) + "=" + r.choice("01"),
            lambda: "sysctl -qw net.ipv4.conf." + r.choice(["d0", "all", "default"]) + ".rp_filter=" + r.choice("012"),
            lambda: "sysctl -qw net.ipv6.conf." + r.choice(["d0", "all", "default", "v0"]) + "." + r.choice(["forwarding", "proxy_ndp", "ignore_routes_with_linkdown"]) + "=" + r.choice("01"),
            lambda: "ip " + r.choice(["", "", "-4 ", "-6 "]) + "ntable change" + r.choice([" name arp_cache", " name ndisc_cache", " name arp_cache", "", " name foo"])
            + r.choice([" dev d0", " dev d0", " dev v0", "", " dev nosuch"])
            + "".join(" " + r.choice(["retrans", "gc_stale", "delay_probe", "anycast_delay", "proxy_delay", "locktime"]) + " " + r.choice(["500", "1000", "4", "15", "0", "x", "-1", "100000"])
                      for _ in range(r.randrange(0, 3)))
            + "".join(" " + r.choice(["queue", "app_probes", "ucast_probes", "mcast_probes", "proxy_queue"]) + " " + r.choice(["5", "0", "100", "0x10", "y"])
                      for _ in range(r.randrange(0, 2)))
            + r.choice([""] * 8 + [" thresh1 5", " bogus 1", " gc_int 1000"]),
            lambda: "ip ntable " + r.choice(["foo", "show dev", "show dev nosuch", "show bar", "change", "chg name arp_cache retrans"]),
            lambda: "ip link set d1 mtu " + r.choice(["1000", "1500"]), lambda: "ip link add d2 type dummy", lambda: "ip link del d2",
            lambda: "ip token " + r.choice(["set ::5 dev v0", "set ::5 dev lo", "set ::5 dev d0", "set ::6 dev v1", "set 10.0.0.1 dev v0", "set dev v0", "set ::5", "del dev v0", "set ::5 dev nosuch",
                                            "get dev v0", "list", "foo", "set ::7 dev v0 x", "get dev nosuch", "set :: dev v0"]),
            lambda: "ip tcp_metrics " + r.choice(["", "show", "flush", "show 10.0.0.1", "delete 10.0.0.1", "delete", "delete 10.0.0.0/24", "flush 10.0.0.0/8", "foo", "show source 10.0.0.1", "flush all",
                                                  "show 10.0.0.1 address 10.0.0.2", "delete fd00::1", "show foo"]),
            lambda: "ip netconf " + r.choice(["foo", "show dev nosuch", "show bar"]),
        ])()

    def show():
        return r.choice(["ip addrlabel", "ip addrlabel", "ip -j addrlabel", "ip -6 addrlabel list", "ip -j -p addrlabel", "ip -4 addrlabel", "ip netconf", "ip -4 netconf show dev d0", "ip -j netconf",
                         "ip -6 netconf", "ip netconf show dev v0", "ip -j -p netconf show dev d1", "ip -4 -j netconf show dev d0", "ip -6 netconf show dev d1", "ip ntable show dev d0",
                         "ip ntable show name ndisc_cache dev v0", "ip -j ntable show dev v0", "ip -o ntable show dev d0", "ip -4 ntable", "ip -6 -j -p ntable show dev d1", "ip ntable show dev none",
                         "ip token", "ip -j token", "ip token list dev v0", "ip tcp_metrics", "ip -j tcp_metrics", "ip ntable show name arp_cache dev d0", "ip -0 netconf", "ip -0 ntable"])

    lines = ["ip link set v0 up", "ip link set v1 up"]
    for _ in range(r.randrange(18, 28)):
        lines.append(change())
        if r.random() < 0.8:
            lines.append(show())
    return lines + ["ip addrlabel", "ip netconf", "ip ntable", "ip token"]


TYPES = ["bitmap:ip", "bitmap:ip,mac", "bitmap:port", "hash:ip", "hash:mac", "hash:ip,mac", "hash:net", "hash:net,net", "hash:ip,port", "hash:net,port", "hash:ip,port,ip",
         "hash:ip,port,net", "hash:ip,mark", "hash:net,port,net", "hash:net,iface", "list:set"]


def sets(r):
    kinds = {}

    def ip(kind):
        odd = ["10.0.0.1-10.0.0.3", "10.0.0.3-10.0.0.1", "10.0.0.0/30", "10.0.0.1/33", "foo", "10.0.0.0/0", "fd00::1", "10.0.0", "0.0.0.0/0", "fd00::/64", "fd00::1-fd00::3", "10.0.1.0-10.0.1.9"]
        return r.choice(odd) if r.random() < 0.3 else "10.0.0." + str(r.randrange(6))

    def net(kind):
        return r.choice([ip(kind), "10.0.0.0/24", "10.0.1.0/25", "10.0.0.0/8", "fd00::/64", "10.0.0.9/28", "10.0.0.4/31"])

    def port():
        return r.choice(["80", "80", "tcp:80", "udp:53", "80-82", "tcp:80-81", "icmp:echo-request", "icmp:8/0", "http", "udp:http", "65536", "0", "sctp:5", "gre:0", "foo:1", "tcp:", "icmpv6:ping", "90-80", "47:0"])

    def mac():
        return r.choice(["02:00:00:00:00:01", "02:00:00:00:00:02", "2:0:0:0:0:3", "zz", "00:00:00:00:00:00"])

    def entry(kind):
        if kind == "list:set":
            word = r.choice(sorted(kinds) + ["nosuch"])
            return word + r.choice(["", "", " before " + r.choice(sorted(kinds)), " after nosuch"])
        parts = []
        for part in kind.split(":")[1].split(","):
            parts.append({"ip": ip, "net": net}[part](kind) if part in ("ip", "net") else port() if part == "port" else mac() if part == "mac"
                         else r.choice(["1", "0x10", "x", "4294967296"]) if part == "mark" else r.choice(["eth0", "physdev:eth1", "wlan0", "averyverylongname0"]))
        if kind == "bitmap:port":
            parts = [r.choice(["80", "81-83", "tcp:80", "1000", "90", "http", "101"])]
        if r.random() < 0.06:
            parts = parts[:-1] or ["x"]
        if r.random() < 0.04:
            parts.append("10.0.0.1")
        return ",".join(parts)

    def of_entry():
        words = []
        for text, p in [("timeout " + r.choice(["0", "100000", "2147483", "2147484", "x"]), 0.15), ("packets 5", 0.1), ("bytes 0x100", 0.08), ("packets 9 bytes 900", 0.06),
                        ("comment " + r.choice(["hello", "'two words'", "'a\"b'"]), 0.12), ("nomatch", 0.08), ("skbmark " + r.choice(["0x1/0xff", "5", "0x1/0x0", "x"]), 0.08),
                        ("skbprio " + r.choice(["1:10", "0:0", "1"]), 0.06), ("skbqueue 3", 0.06), ("-exist", 0.25), ("bogus", 0.02)]:
            if r.random() < p:
                words.append(text)
        return " ".join(words)

    def create():
        name = r.choice("abcdef")
        kind = r.choice(TYPES)
        words = [name, kind]
        if kind.startswith("bitmap"):
            words += r.choice([["range", "10.0.0.0/24"], ["range", "10.0.0.0-10.0.0.99"], ["range", "10.0.0.0/8"], [], ["range", "10.0.0.0/16", "netmask", "24"]]) if "port" not in kind \
                else r.choice([["range", "80-100"], ["range", "0-65535"], ["range", "http-1000"], [], ["range", "100-80"]])
        elif kind != "list:set":
            words += r.choice([[], [], [], ["family", "inet"], ["family", "inet6"]]) if "mac" != kind.split(":")[1] else []
            words += r.choice([[], [], ["hashsize", r.choice(["64", "1000", "0"])], ["maxelem", r.choice(["3", "100", "0"])], ["bucketsize", "4"]])
            if kind == "hash:ip":
                words += r.choice([[], [], ["netmask", r.choice(["24", "0", "33"])]])
            if kind == "hash:ip,mark":
                words += r.choice([[], ["markmask", r.choice(["0xff", "0"])]])
            words += ["initval", "0x1234"] if r.random() < 0.97 else ["bogus"]
        else:
            words += r.choice([[], [], ["size", r.choice(["4", "1"])]])
        for text, p in [("timeout " + r.choice(["0", "100000", "2147484"]), 0.25), ("counters", 0.25), ("comment", 0.25), ("skbinfo", 0.2), ("forceadd", 0.06), ("-exist", 0.06)]:
            if r.random() < p and not (text == "forceadd" and not kind.startswith("hash")):
                words.append(text)
        kinds.setdefault(name, kind)
        return "ipset create " + " ".join(words)

    lines = [create() for _ in range(5)]
    for _ in range(r.randrange(24, 36)):
        name = r.choice(sorted(kinds) if r.random() < 0.95 else ["nosuch"])
        kind = kinds.get(name, "hash:ip")
        p = r.random()
        if p < 0.55:
            lines.append(f"ipset add {name} {entry(kind)} {of_entry()}")
        elif p < 0.7:
            lines.append(f"ipset del {name} {entry(kind)} " + r.choice(["", "", "-exist", "timeout 5"]))
        elif p < 0.8:
            lines.append(f"ipset test {name} {entry(kind)}")
        elif p < 0.86:
            lines.append(create())
        else:
            other = r.choice(sorted(kinds) + ["g"])
            lines.append(r.choice([f"ipset swap {name} {other}", f"ipset rename {name} g{r.randrange(3)}", f"ipset flush {name}", f"ipset destroy {name}", f"ipset swap {name}",
                                   f"ipset rename {name} {other}", "ipset foo", "ipset add", "ipset", f"ipset list {name} {other}", "ipset -q test nosuch 1.1.1.1", f"ipset -! del {name} {entry(kind)}",
                                   f"ipset -N h hash:ip initval 0x1", f"ipset -A {name} {entry(kind)}", f"ipset -X {name}"]))
        if r.random() < 0.45:
            lines.append(r.choice([f"ipset list {name}", f"ipset save {name}", f"ipset list -t {name}", f"ipset -s list {name}", "ipset list -n", f"ipset -o xml list {name}", f"ipset list {name} -o save",
                                   f"ipset -s -r list {name}", "ipset -t list"]))
    return lines + ["ipset -s list", "ipset -s save", "ipset -o xml -s list", "ipset destroy", "ipset -n list"]


def connections(r):
    def tuple_(six, verb):
        a, b = ("fd00::1", "fd00::2") if six else ("10.0.0.1", "10.0.0.2")
        words = []
        proto = r.choice(["tcp", "tcp", "udp", "udp", "icmpv6" if six else "icmp", "udplite", "89", "ospf", "foo"] if r.random() < 0.95 else ["6", "17", "TCP"])
        src, dst = (a, b) if r.random() < 0.8 else (b, a)
        add = lambda *w: words.extend(w)
        if r.random() < 0.96 or verb != "-I":
            add("-p", proto)
        add("-s", src, "-d", dst)
        if proto in ("tcp", "udp", "udplite", "6", "17", "TCP"):
            add("--sport", str(r.choice([1000, 1001, 80])), "--dport", str(r.choice([80, 443, 53])))
        if proto.startswith("icmp"):
            add("--icmp-type" if not six else "--icmpv6-type", r.choice(["8", "8", "0", "128", "x"] if not six else ["128", "129", "8"]), "--icmp-code" if not six else "--icmpv6-code", "0", "--icmp-id" if not six else "--icmpv6-id", "5")
        if proto in ("tcp", "6", "TCP") and (r.random() < 0.93 or verb != "-I"):
            add("--state", r.choice(["ESTABLISHED", "SYN_SENT", "TIME_WAIT", "established", "FOO", "LISTEN", "NONE"] if r.random() < 0.4 else ["ESTABLISHED", "CLOSE"]))
        return words

    def make():
        six = r.random() < 0.3
        verb = "-I" if r.random() < 0.85 else "-U"
        words = tuple_(six, verb)
        if r.random() < 0.93:
            words += ["-t", r.choice(["100000", "99999", "x", "-5"] if r.random() < 0.1 else ["100000"])]
        for text, p in [("-m " + r.choice(["5", "0x10", "0x5/0xff", "x"]), 0.25), ("-u " + r.choice(["SEEN_REPLY", "ASSURED", "SEEN_REPLY,ASSURED", "FIXED_TIMEOUT", "UNSET", "FOO", "EXPECTED"]), 0.3),
                        ("-w " + r.choice(["5", "7", "70000"]), 0.12), ("-n 192.0.2.1", 0.08), ("-g 192.0.2.9:8080", 0.07), ("-j", 0.02), ("-l eth0-in", 0.03)]:
            if r.random() < p:
                words += text.split()
        if r.random() < 0.12:
            words += ["-r", "fd00::2" if six else "10.0.0.9"]
        if six and r.random() < 0.4:
            words += ["-f", "ipv6"]
        return "conntrack " + verb + " " + " ".join(words)

    def filters():
        words = []
        for text, p in [("-p " + r.choice(["tcp", "udp", "icmp", "foo", "icmpv6", "sctp", "17", "255"]), 0.35), ("-s " + r.choice(["10.0.0.1", "10.0.0.0/24", "fd00::1", "10.0.0.1/33", "x"]), 0.2),
                        ("-d " + r.choice(["10.0.0.2", "10.0.0.0/30", "fd00::/64"]), 0.2), ("--sport 1000", 0.1), ("--dport " + r.choice(["80", "99999"]), 0.1),
                        ("-m " + r.choice(["5", "0x10/0xf0", "0/0x1"]), 0.12), ("-u " + r.choice(["ASSURED", "SEEN_REPLY", "UNREPLIED", "OFFLOAD"]), 0.12), ("-f " + r.choice(["ipv4", "ipv6", "foo"]), 0.15),
                        ("-w 5", 0.08), ("--orig-zone 3", 0.04), ("-r 10.0.0.2", 0.05), ("-q 10.0.0.1", 0.05), ("-n", 0.06), ("-g", 0.05), ("-j", 0.04), ("--state ESTABLISHED", 0.06), ("-l foo", 0.03),
                        ("--reply-port-src 80", 0.05), ("--mask-src 255.255.255.0", 0.03), ("--bogus", 0.02), ("-n 192.0.2.1", 0.03), ("-z", 0.03)]:
            if r.random() < p:
                words.append(text)
        return " ".join(words)

    def output():
        return r.choice(["", "", "", "-o extended", "-o id", "-o xml", "-o save", "-o extended,xml", "-o labels", "-o ktimestamp", "-o foo", "-o timestamp"])

    lines = []
    for _ in range(r.randrange(16, 26)):
        lines.append(make() if r.random() < 0.7 else "conntrack " + r.choice(
            ["-D " + filters(), "-D " + filters(), "-U " + " ".join(tuple_(False, "-U")) + " -m 7", "-G " + " ".join(tuple_(r.random() < 0.3, "-G")), "-F", "-F expect", "-C", "-C expect", "-S -x", "-h", "-L expect",
             "-L dying", "-L unconfirmed", "-L foo", "", "-L -D", "-V", "-D -p tcp --sport", "-Z", "-C -p tcp", "-F -p tcp", "-G", "-I", "-D expect", "-L conntrack -p udp", "-L dying -p tcp", "-A",
             "--dump", "--count conntrack", "-L --proto udp", "-E -e FOO", "-L -e NEW"]))
        if r.random() < 0.6:
            lines.append("conntrack -L " + filters() + " " + output())
    return lines + ["conntrack -L", "conntrack -L -f ipv6", "conntrack -L -o extended", "conntrack -L -o save", "conntrack -L -o xml", "conntrack -C", "cat /proc/net/nf_conntrack", "conntrack -D", "conntrack -C"]


def listings(r):
    def expression(depth=0):
        p = r.random()
        if depth < 2 and p < 0.25:
            return expression(depth + 1) + " " + r.choice(["and", "or", "&&", "||", ""]) + " " + expression(depth + 1)
        if depth < 2 and p < 0.35:
            return r.choice(["not ", "! "]) + expression(depth + 1)
        if depth < 2 and p < 0.43:
            return "( " + expression(depth + 1) + " )"
        return r.choice([
            "sport " + r.choice(["= :22", "> 1024", ">= :http", "eq 22", "!= 5", "lt :ssh", "neq 7", "<= 65536", "= 10.0.0.1:22", "ge foo", ": 22", "le", "= :*"]),
            "dport " + r.choice(["= :443", "geq 1024", "== 80", "gt :1", "= x", "leq 100"]),
            "src " + r.choice(["10.0.0.1", "10.0.0.0/8", "10.0.0.1:22", "[fd00::1]:80", "fd00::/16", "*:22", "foo.invalid", "= 10.0.0.1", "10.0.0.1/33", "localhost", "unix:/x", "any", "10.0.0.1:http"]),
            "dst " + r.choice(["10.0.0.2", "10.0.0.2:5000", "0.0.0.0/0", ":80", "[::]", "10.0.0.2:x"]),
            "dev " + r.choice(["lo", "nosuch", "= lo", "!= lo", "1", "99"]), "fwmark " + r.choice(["= 5", "= 5/0xff", "!= 0x10", "x", "5"]), "cgroup = /x", "autobound", "bogus", "sport", "dst", "( sport = :1",
        ])

    def states():
        return r.choice(["", "", "state " + r.choice(["established", "all", "connected", "synchronized", "bucket", "big", "listening", "listen", "close-wait", "time-wait", "syn-recv", "foo", "closed", "unconnected",
                                                      "fin-wait-1", "fin-wait-2", "last-ack", "closing", "syn-sent", "Established", "close"]),
                         "exclude " + r.choice(["listening", "established", "foo", "connected"]), "state listening exclude listening", "state", "exclude"])

    def options():
        words = []
        for text, p in [("-t", 0.5), ("-u", 0.3), ("-w", 0.15), ("-n", 0.4), ("-a", 0.3), ("-l", 0.25), ("-e", 0.1), ("-m", 0.1), ("-i", 0.15), ("-o", 0.15), ("-4", 0.12), ("-6", 0.12), ("-H", 0.15), ("-O", 0.1),
                        ("-p", 0.1), ("-r", 0.02), ("--tos", 0.08), ("-A " + r.choice(["tcp", "udp", "inet", "tcp,udp", "raw", "foo", "!tcp"]), 0.1), ("-f " + r.choice(["inet", "inet6", "foo"]), 0.1),
                        ("-Q", 0.03), ("--bogus", 0.03), ("-N nosuch", 0.03), ("-F /nosuch", 0.02), ("-V", 0.02), ("-f", 0.01), ("--inet-sockopt", 0.04)]:
            if r.random() < p:
                words.append(text)
        if not any(w in ("-t", "-u", "-w") for w in words):
            words.append("-t")
        return " ".join(words)

    return ["ss " + options() + " " + states() + " " + r.choice(["", "", expression()]) for _ in range(30)]


def record(seed):
    r = random.Random(seed)
    family = [neighbours, groups, settings, sets, connections, listings][seed // 100]
    steps = []
    begin = BEGIN if seed < 300 else ["ip link set lo up"] if seed < 400 else []
    for line in begin + [" ".join(line.split()) for line in family(r)]:
        done = subprocess.run(shlex.split(line), capture_output=True, text=True, errors="replace", timeout=20)
        err = done.stderr
        if line.startswith("ss ") and "Usage:" in err:
            # Its text of usage is long.
            err = err[:err.index("Usage:")] + "Usage:"
        steps.append({"run": line, "out": done.stdout, "err": err, "status": done.returncode})
        # What follows in the kernel's own time has followed.
        if 100 < seed < 200:
            time.sleep(0.03)
    return {"seed": seed, "steps": steps}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(out, "a") as f:
        for seed in range(first, first + count):
            # Each in a namespace of its own.
            if "--one" in sys.argv:
                f.write(json.dumps(record(seed), separators=(",", ":")) + "\n")
                continue
            part = subprocess.run(["unshare", "-n", sys.executable, sys.argv[0], str(seed), "1", "/dev/stdout", "--one"], capture_output=True, text=True)
            if part.returncode:
                sys.stderr.write(part.stderr)
            f.write(part.stdout)
            f.flush()


if __name__ == "__main__":
    main()
