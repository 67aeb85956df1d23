#!/usr/bin/env python3
"""Records what a real machine says of nexthops (`ip nexthop`) and of the routes that go by them.

    nexthops.py FIRST COUNT OUT.jsonl

One line for each seed: commands, what each prints, and its exit status. Run it as root inside the recorder's kernel with iproute2 6.1 in the path.
Nothing outside a network namespace of its own is touched.
"""
import json
import random
import subprocess
import sys

BEGIN = [
    "ip link set lo up",
    "ip link set lan0 up",
    "ip link set lan1 up",
    "ip addr add 10.0.0.1/24 dev lan0",
    "ip addr add 10.0.1.1/24 dev lan1",
    "ip addr add fd00::1/64 dev lan0 nodad",
    "ip addr add fd00:1::1/64 dev lan1 nodad",
]
SHOWN = ["ip nexthop", "ip -d nexthop", "ip -j nexthop", "ip route", "ip -d route", "ip -j route", "ip -6 route", "ip -d -6 route",
         "ip -j -6 route", "ip -4 nexthop", "ip -6 nexthop", "ip nexthop show groups", "ip nexthop show dev lan1", "ip -p -j -d nexthop",
         "ip nexthop show proto 4", "ip -j -d route", "ip -s nexthop", "ip -d -o route"]


def some_id(r):
    return r.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) if r.random() < 0.94 else r.choice([0, 99, 4294967295, "x", "0x3", "-1", ""])


def dev(r):
    return r.choice(["lan0", "lan0", "lan1"]) if r.random() < 0.96 else r.choice(["nosuch", "quiet0", "lo"])


def gateway(r, four):
    if four:
        usual = f"10.0.{r.randrange(2)}.{r.randrange(2, 9)}"
        odd = ["10.9.0.1", "10.0.0.1", "10.0.0.255", "0.0.0.0", "224.0.0.1", "10.0.0", "10.0.0.999", "fd00::2"]
    else:
        usual = f"fd00{r.choice(['', ':1'])}::{r.randrange(2, 9)}"
        odd = ["fe80::5", "fe80::6", "fd00::1", "fd09::1", "ff02::1", "::", "fd00:::1", "10.0.0.2"]
    return usual if r.random() < 0.85 else r.choice(odd)


def group(r):
    def member():
        weight = "" if r.random() < 0.5 else f",{r.choice([1, 2, 3, 10, 255, 256])}"
        if r.random() < 0.03:
            weight = r.choice([",0", ",257", ",x", ","])
        return f"{some_id(r) if r.random() < 0.15 else r.randrange(1, 7)}{weight}"
    count = r.choice([1, 1, 2, 2, 3, 4])
    return "/".join(member() for _ in range(count))


def nexthop(r):
    verb = r.choice(["add", "add", "add", "replace", "replace"])
    proto = f" proto {r.choice(['static', 'bgp', '4', '77', 'nosuch'])}" if r.random() < 0.15 else ""
    what = r.random()
    if what < 0.3:
        return f"ip nexthop {verb} id {r.randrange(7, 11) if r.random() < 0.9 else some_id(r)} group {group(r)}{proto}" + \
            (" type mpath" if r.random() < 0.1 else "")
    if what < 0.38:
        return f"ip {r.choice(['', '', '-6 '])}nexthop {verb} id {some_id(r)} blackhole{proto}"
    if what < 0.5:
        return f"ip {r.choice(['', '-4 ', '-6 '])}nexthop {verb} id {some_id(r)} dev {dev(r)}{proto}"
    if what < 0.55:
        return r.choice(["ip nexthop add id 3", "ip nexthop add", "ip nexthop replace dev lan0", "ip nexthop add dev lan0 id 3 onlink",
                         "ip nexthop add id 4 foo", "ip nexthop add id 4 dev nosuch foo", "ip nexthop add id 4 via 10.0.0.2",
                         "ip nexthop add id 4 blackhole dev lan0", "ip nexthop add id 4 dev lan0 via 10.0.0.2", "ip nexthop add dev lan1",
                         "ip nexthop add blackhole", "ip nexthop add id 4 dev lan0 via inet6 fd00::2", "ip nexthop add id", "ip nexthop add id 9 group",
                         "ip nexthop add id 9 group 1 dev lan0", "ip -6 nexthop add id 9 group 1", "ip nexthop add id 9 type nosuch group 1"])
    four = r.random() < 0.55
    onlink = " onlink" if r.random() < 0.12 else ""
    where = f" dev {dev(r)}" if r.random() < 0.97 else ""
    return f"ip nexthop {verb} id {some_id(r)} via {gateway(r, four)}{where}{onlink}{proto}"


def route(r):
    four = r.random() < 0.6
    prefix = f"192.0.{r.randrange(2, 6)}.0/24" if four else f"fd0{r.randrange(1, 5)}::/32"
    ip = "ip" if four else "ip -6"
    by = f"nhid {some_id(r)}"
    if r.random() < 0.05:
        by += r.choice([" dev lan0", " via 10.0.0.2" if four else " via fd00::2", " scope link", " scope host"])
    if r.random() < 0.1:
        by = "via 10.0.0.7" if four else "via fd00::7"
    metric = f" metric {r.choice([5, 6])}" if r.random() < 0.2 else ""
    kind = r.choice(["blackhole ", "unreachable "]) if four and r.random() < 0.04 else ""
    verb = r.choice(["add", "add", "add", "replace", "append", "change", "del"])
    if verb == "del" and r.random() < 0.4:
        by = r.choice(["", "", "dev lan0"])
    return f"{ip} route {verb} {kind}{prefix} {by}{metric}".rstrip()


def command(r):
    kind = r.random()
    if kind < 0.42:
        return nexthop(r)
    if kind < 0.68:
        return route(r)
    if kind < 0.75:
        return r.choice([f"ip nexthop del id {some_id(r)}", f"ip nexthop del id {r.randrange(1, 11)}", "ip nexthop del", "ip nexthop del id 3 dev lan0",
                         "ip nexthop del 3", "ip nexthop del id 3 proto 4", "ip nexthop del id 3 onlink"])
    if kind < 0.8:
        return r.choice([f"ip nexthop get id {some_id(r) or 3}", f"ip -j nexthop get id {r.randrange(1, 11)}", f"ip nexthop show id {some_id(r)}",
                         "ip nexthop show dev nosuch", "ip nexthop show foo", "ip nexthop show proto static", "ip nexthop nosuch",
                         "ip nexthop show vrf lan0", "ip nexthop show master nosuch", "ip nexthop show id 3 foo", "ip nexthop list"])
    if kind < 0.86:
        to = f"192.0.{r.randrange(2, 6)}.9" if r.random() < 0.6 else f"fd0{r.randrange(1, 5)}::9"
        # Of several ways the one that is taken is the hash's affair: the route itself is asked for.
        return f"ip route get fibmatch {to}"
    if kind < 0.9:
        return r.choice(["ip link set lan1 down", "ip link set lan1 up", "ip link set wire1 down", "ip link set wire1 up", "ip link set lan0 down",
                         "ip link set lan0 up", "ip addr del 10.0.1.1/24 dev lan1", "ip addr add 10.0.1.1/24 dev lan1"])
    if kind < 0.92:
        return r.choice(["ip nexthop flush", "ip nexthop flush dev lan1", "ip nexthop flush groups", "ip nexthop flush proto 4",
                         "ip nexthop flush id 3", "ip nexthop flush id 99"])
    return r.choice(SHOWN)


def run(line):
    words = line.split(" ")
    if words[-1] == "":
        words = words[:-1] + [""]
    done = subprocess.run(words, capture_output=True, text=True)
    return {"run": line, "out": done.stdout, "err": done.stderr, "status": done.returncode}


def record(seed):
    r = random.Random(seed)
    for name, peer in [("lan0", "wire0"), ("lan1", "wire1")]:
        subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", peer], check=True)
        subprocess.run(["ip", "link", "set", peer, "up", "addrgenmode", "none"], check=True)
        subprocess.run(["ip", "link", "set", name, "addrgenmode", "none"], check=True)
    subprocess.run(["ip", "link", "add", "quiet0", "type", "veth", "peer", "name", "quiet1"], check=True)
    steps = [run(line) for line in BEGIN]
    for _ in range(r.randrange(25, 60)):
        line = command(r)
        steps.append(run(line))
        if line.startswith("ip link set"):
            # A carrier is noticed by a worker.
            subprocess.run(["sleep", "1.2"], check=True)
    steps += [run(line) for line in SHOWN[:9]]
    subprocess.run("ip nexthop flush; ip link del lan0; ip link del lan1; ip link del quiet0; ip route flush table main; ip -6 route flush table main",
                   shell=True, capture_output=True)
    return {"seed": seed, "steps": steps}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(out, "w") as f:
        for seed in range(first, first + count):
            # Each in a namespace of its own: ids that the kernel finds begin anew.
            if "--one" in sys.argv:
                f.write(json.dumps(record(seed), separators=(",", ":")) + "\n")
                continue
            part = subprocess.run(["unshare", "-n", sys.executable, sys.argv[0], str(seed), "1", "/dev/stdout", "--one"],
                                  check=True, capture_output=True, text=True)
            f.write(part.stdout)
            f.flush()


if __name__ == "__main__":
    main()
