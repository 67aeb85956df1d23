#!/usr/bin/env python3
"""Records what a real machine says of routes of IPv4 whose gateways are of IPv6 (`via inet6`, RFC 5549), by themselves, among several ways, and by `nhid`.

    gateways6.py FIRST COUNT OUT.jsonl [--ways]

One line for each seed: commands, what each prints, and its exit status. Run it as root inside the recorder's kernel with iproute2 6.1 in the path.
Nothing outside a network namespace of its own is touched. The recorder's kernel has no routes of several ways (CONFIG_IP_ROUTE_MULTIPATH): with `--ways`
they are tried too, in a kernel that has them.
"""
import json
import random
import subprocess
import sys

from nexthops import BEGIN, run

MORE = ["ip nexthop add id 1 via fe80::1 dev lan0", "ip nexthop add id 2 via fd00:1::7 dev lan1", "ip nexthop add id 3 via 10.0.0.7 dev lan0",
        "ip nexthop add id 4 via fe80::4 dev lan0", "ip nexthop add id 6 group 1", "ip nexthop add id 7 group 1,3/2/4"]
WAYS = "--ways" in sys.argv
# Of a source that is nobody's a newer kernel says something else.
FROM = "ip route get 198.51.100.9" + ("" if WAYS else " from 10.0.1.1")
SHOWN = ["ip route", "ip -d route", "ip -j route", "ip -p -j route", "ip -4 route show table all", "ip -j -d route", "ip -o route", "ip -6 route",
         "ip route show dev lan0", "ip route show via 10.0.0.7", "ip nexthop", "ip -j nexthop", "ip route show proto 4", "ip route show scope link",
         "ip route show 192.0.2.0/24", "ip route show root 192.0.0.0/8", "cat /proc/net/route", "ip -d nexthop"]


def dev(r):
    return r.choice(["lan0", "lan0", "lan1"]) if r.random() < 0.97 else r.choice(["nosuch", "quiet0", "lo"])


def gateway(r):
    usual = r.choice(["fe80::1", "fe80::2", "fe80::1:2", "fd00::7", "fd00:1::7", "fd00::8"])
    odd = ["fd00::1", "fd09::1", "ff02::1", "::", "fd00:::1", "10.0.0.2", "::ffff:10.0.0.2", "FE80:0::00A", "::1", "default", "10.0.0"]
    if WAYS:
        # What a newer kernel says of no address at all is its own.
        odd = [o for o in odd if o not in ("::", "default")]
    return usual if r.random() < 0.88 else r.choice(odd)


def via(r):
    what = r.random()
    if what < 0.68:
        return f"via inet6 {gateway(r)}"
    if what < 0.8:
        return f"via {r.choice(['10.0.0.7', '10.0.1.7'])}"
    if what < 0.86:
        return f"via inet {r.choice(['10.0.0.7', '10.0.1.7', 'fe80::1'])}"
    return r.choice([f"via {gateway(r)}", "via inet6", "via inet6 fe80::1 via inet6 fe80::2", "via", "via link 00:11:22:33:44:55", "via inet5 fe80::1"]) \
        if what < 0.92 else f"via inet6 {gateway(r)}"


def way(r):
    where = f" dev {dev(r)}" if r.random() < 0.94 else ""
    onlink = " onlink" if r.random() < 0.13 else ""
    return f"{via(r)}{where}{onlink}"


def route(r):
    # The family is told by what stands first.
    ip = r.choice(["ip", "ip", "ip", "ip -4", "ip -6"]) if r.random() < 0.15 else "ip"
    prefix = f"192.0.{r.randrange(2, 6)}.0/24"
    if r.random() < 0.2:
        prefix = r.choice(["default", "10.9.0.0/16", "192.0.2.5", "fd05::/64", "192.0.2.1/24"])
    if prefix == "default" and r.random() < 0.7:
        ip = "ip -4"
    what = r.random()
    if what < 0.55:
        by = way(r)
    elif what < 0.75 and WAYS:
        hops = []
        for _ in range(r.choice([1, 2, 2, 3])):
            weight = f" weight {r.choice([1, 2, 9, 256, 0])}" if r.random() < 0.3 else ""
            hops.append(f"nexthop {way(r)}{weight}")
        by = " ".join(hops)
    elif what < 0.57:
        # The recorder's kernel knows no routes of several ways: only their words are tried, with mistakes in them.
        by = f"nexthop {way(r)} nexthop via inet6 fe80::1 {r.choice(['weight 0', 'dev nosuch', 'foo', 'via inet6 x'])}"
    else:
        usual = [1, 2, 3, 4, 6, 7] if WAYS else [1, 2, 3, 4, 6]
        by = f"nhid {r.choice(usual) if r.random() < 0.9 else r.choice([5, 9, 10, 0])}"
    extra = ""
    if r.random() < 0.2 and "nexthop" not in by:
        extra = r.choice([" metric 5", " metric 6", " src 10.0.0.1", " src 10.0.9.9", " mtu 1300", " proto 4", " table 77", " tos 0x10", " scope link",
                          " scope host", " scope global", " realm 3", " pref high", " pref low"])
    kind = r.choice(["blackhole ", "unreachable ", "local ", "prohibit "]) if r.random() < 0.04 else ""
    verb = r.choice(["add", "add", "add", "add", "replace", "replace", "append", "change", "prepend", "del", "del"])
    if verb == "del" and r.random() < 0.5:
        by = r.choice(["", "", "dev lan0", "via inet6 fe80::1", "via inet6 fd00::7", "via inet6 fe80::1 dev lan1", "via 10.0.0.7"])
    if r.random() < 0.08 and "nexthop" not in by:
        return f"{ip} route {verb} {kind}{by}{extra} {prefix}".replace("  ", " ")
    if "nexthop" in by:
        return f"{ip} route {verb} {kind}{prefix} {by}"
    return f"{ip} route {verb} {kind}{prefix} {by}{extra}".rstrip()


def nexthop(r):
    verb = r.choice(["add", "add", "replace", "replace"])
    what = r.random()
    if what < 0.3:
        group = r.randrange(6, 9)
        count = 1 if group == 6 and not WAYS else r.choice([1, 2, 2, 3])
        members = "/".join(str(r.randrange(1, 6)) + r.choice(["", "", ",2"]) for _ in range(count))
        return f"ip nexthop {verb} id {group} group {members}"
    if what < 0.36:
        return f"ip {r.choice(['', '-6 '])}nexthop {verb} id {r.randrange(1, 6)} {r.choice(['blackhole', 'dev lan0', 'dev lan1'])}".replace("  ", " ")
    if what < 0.5:
        return f"ip nexthop {verb} id {r.randrange(1, 6)} via {r.choice(['10.0.0.7', '10.0.1.8'])} dev {r.choice(['lan0', 'lan1'])}"
    return f"ip nexthop {verb} id {r.randrange(1, 6)} via {gateway(r)} dev {dev(r)}{' onlink' if r.random() < 0.1 else ''}"


def command(r):
    kind = r.random()
    if kind < 0.5:
        return route(r)
    if kind < 0.63:
        return nexthop(r)
    if kind < 0.66:
        return f"ip nexthop del id {r.randrange(1, 9)}"
    if kind < 0.76:
        to = f"192.0.{r.randrange(2, 6)}.9"
        # Of several ways the one that is taken is the hash's affair: only the route itself is asked for.
        return r.choice([f"ip route get fibmatch {to}", f"ip -j route get fibmatch {to}"])
    if kind < 0.82:
        return r.choice(["ip route get 198.51.100.9", "ip -j route get 198.51.100.9", FROM, "ip -d route get 198.51.100.9",
                         "ip route get 198.51.100.9 oif lan1", "ip route get fibmatch 198.51.100.9",
                         "ip route replace 198.51.100.0/24 via inet6 fe80::9 dev lan1", "ip route replace 198.51.100.0/24 via inet6 fd00::9",
                         "ip route replace 198.51.100.0/24 nhid 1", "ip route replace 198.51.100.0/24 via inet6 fe80::9 dev lan0 src 10.0.1.1"])
    if kind < 0.86:
        return r.choice(["ip link set lan1 down", "ip link set lan1 up", "ip link set wire1 down", "ip link set wire1 up", "ip link set lan1 up", "ip link set lan0 down",
                         "ip link set lan0 up", "ip link set lan0 up", "ip addr del 10.0.1.1/24 dev lan1", "ip addr add 10.0.1.1/24 dev lan1",
                         "sysctl -q -w net.ipv6.conf.lan0.disable_ipv6=1", "sysctl -q -w net.ipv6.conf.lan0.disable_ipv6=0",
                         "ip link set lan1 mtu 1000", "ip link set lan1 mtu 1500", "ip -6 addr del fd00::1/64 dev lan0",
                         "ip -6 addr add fd00::1/64 dev lan0 nodad", "ip route flush proto 4", "ip route flush 192.0.2.0/24"])
    return r.choice(SHOWN)


def record(seed):
    r = random.Random(seed)
    for name, peer in [("lan0", "wire0"), ("lan1", "wire1")]:
        subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", peer], check=True)
        subprocess.run(["ip", "link", "set", peer, "up", "addrgenmode", "none"], check=True)
        subprocess.run(["ip", "link", "set", name, "addrgenmode", "none"], check=True)
    subprocess.run(["ip", "link", "add", "quiet0", "type", "veth", "peer", "name", "quiet1"], check=True)
    steps = [run(line) for line in BEGIN + MORE]
    for _ in range(r.randrange(25, 55)):
        line = command(r)
        steps.append(run(line))
        if line.startswith("ip link set"):
            # A carrier is noticed by a worker.
            subprocess.run(["sleep", "1.2"], check=True)
    steps += [run(line) for line in SHOWN[:8]]
    return {"seed": seed, "steps": steps}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if "--one" in sys.argv:
        with open(out, "w") as f:
            f.write(json.dumps(record(first), separators=(",", ":")) + "\n")
        return
    with open(out, "w") as f:
        for seed in range(first, first + count):
            # Each in a namespace of its own: ids that the kernel finds begin anew.
            part = subprocess.run(["unshare", "-n", sys.executable, sys.argv[0], str(seed), "1", "/dev/stdout", "--one"] + sys.argv[4:],
                                  check=True, capture_output=True, text=True)
            f.write(part.stdout)
            f.flush()


if __name__ == "__main__":
    main()
