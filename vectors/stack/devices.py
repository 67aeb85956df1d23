#!/usr/bin/env python3
"""Records what a real machine with VRFs, bonds or macvlans does to packets.

    devices.py KIND FIRST COUNT OUT.jsonl

One line for each seed: the wires, the commands, the packets that are put on the wires, what came out of the machine by them after each, and at the end what
each device and qdisc and each of iptables' rules has counted. Run it inside a kernel of one's own (`run-in-kernel --engine uml`), with the modules vrf,
bonding and macvlan. Nothing outside the network namespaces it makes is touched. It shares its machine with spaces.py and its packets with record.py.
"""
import importlib.util
import json
import os
import random
import sys
import time

spec = importlib.util.spec_from_file_location("spaces", os.path.join(os.path.dirname(os.path.abspath(__file__)), "spaces.py"))
spaces = importlib.util.module_from_spec(spec)
sys.argv, argv = [sys.argv[0], "0", "0", "/dev/null"], sys.argv
spec.loader.exec_module(spaces)
sh, HOST_MAC = spaces.sh, spaces.HOST_MAC


def neighbours(dev, ips):
    return [f"ip neigh add {ip} lladdr {HOST_MAC} nud permanent dev {dev}" for ip in ips]


def queue(r, dev):
    """A qdisc or a filter in which time has no part."""
    return r.choice([
        [],
        [f"tc qdisc add dev {dev} root handle 1: prio"],
        [f"tc qdisc add dev {dev} root handle 1: pfifo limit 30"],
        [f"tc qdisc add dev {dev} clsact", f"tc filter add dev {dev} egress protocol ip prio 1 flower ip_proto icmp action drop"],
        [f"tc qdisc add dev {dev} clsact", f"tc filter add dev {dev} ingress protocol ip prio 1 flower ip_proto udp dst_port 5353 action drop"],
    ])


NETS = {"lan0": ("10.0.0.1/24", ["10.0.0.11", "10.0.0.12"]), "wan0": ("192.0.2.1/24", ["192.0.2.100", "192.0.2.101"]),
        "dmz0": ("10.0.0.1/24", ["10.0.0.11", "10.0.0.13"]), "ext0": ("198.51.100.1/24", ["198.51.100.7", "198.51.100.8"])}


def vrf(r):
    """Two VRFs, whose networks overlap, and what is in none."""
    at = {"lan0": r.choice(["red", "red", "red", None]), "wan0": r.choice(["red", "red", None]), "dmz0": "blue", "ext0": r.choice(["blue", "blue", None])}
    c = ["sysctl -qw net.ipv4.ip_forward=1", "ip link add red type vrf table 10", "ip link set red up", "ip link add blue type vrf table 20", "ip link set blue up"]
    if r.random() < 0.3:
        c += ["ip rule add pref 32765 table local", "ip rule del pref 0"]
    if r.random() < 0.4:
        c.append("ip addr add 10.255.0.1/32 dev red")
    for dev, of in at.items():
        address = [f"ip addr add {NETS[dev][0]} dev {dev}"]
        port = [f"ip link set {dev} master {of}"] if of else []
        c += r.choice([address + port, port + address]) + neighbours(dev, NETS[dev][1])
    if at["lan0"] == "red":
        c += r.choice([[], ["ip route add 10.9.0.0/16 via 10.0.0.12 vrf red"], ["ip route add 10.9.0.0/16 via 10.0.0.12 table 10"]])
        c += r.choice([[], ["ip route add unreachable default metric 4278198272 vrf red"], ["ip route add prohibit 203.0.113.0/24 table 10"]])
    if at["ext0"] is None:
        # From one into what is in none, and back.
        c += r.choice([[], ["ip route add 198.51.100.0/24 dev ext0 table 20", f"ip route add {'10.0.0.0/24' if at['lan0'] else '10.0.0.13/32'} dev blue"], ["ip route add 198.51.100.0/24 dev ext0 table 10"]])
    elif r.random() < 0.5:
        c.append("ip route add default via 198.51.100.8 vrf blue")
    if r.random() < 0.2:
        c += ["sysctl -qw net.ipv4.conf.all.rp_filter=1"]
    rules = [f"iptables -A {chain} -{way} {dev}" for chain, way in [("FORWARD", "i"), ("FORWARD", "o"), ("INPUT", "i"), ("OUTPUT", "o")] for dev in ["red", "blue", "lan0", "wan0"]]
    rules += [f"iptables -t mangle -A PREROUTING -i {dev}" for dev in ["red", "blue", "lan0", "dmz0"]]
    rules += [f"iptables -t mangle -A POSTROUTING -o {dev}" for dev in ["red", "blue", "wan0", "dmz0"]]
    rules += ["iptables -A OUTPUT -m conntrack --ctstate UNTRACKED", "iptables -A FORWARD -i red -p udp --dport 2000 -j DROP", "iptables -A INPUT -i blue -p icmp -j DROP"]
    rules += ["iptables -t mangle -A OUTPUT -o red -j MARK --set-mark 5", "iptables -A FORWARD -i lan0 -j DROP", "iptables -t mangle -A PREROUTING -i red -j TOS --set-tos 0x10"]
    c += r.sample(rules, r.choice([0, 4, 8]))
    c += r.choice([[], ["iptables -t nat -A POSTROUTING -o wan0 -j MASQUERADE"], ["iptables -t nat -A POSTROUTING -o ext0 -j MASQUERADE"],
                   ["iptables -t nat -A PREROUTING -i red -p udp --dport 8080 -j DNAT --to-destination 192.0.2.100:53"]])
    c += r.choice([[], [], queue(r, "red"), queue(r, "blue")])
    if r.random() < 0.15:
        c += ["ip link set wan0 nomaster", "ip link set wan0 down", "ip link set wan0 up"] + neighbours("wan0", NETS["wan0"][1])
    to = [a.split("/")[0] for a, _ in NETS.values()] + [ip for _, ips in NETS.values() for ip in ips] + ["10.9.1.1", "203.0.113.5", "10.255.0.1", "10.0.0.255"]
    return list(NETS), c, {dev: (ips, to) for dev, (_, ips) in NETS.items()}


def bond(r):
    """A router whose way to the network is a bond of two or three cards, of which one may go and come back."""
    slaves = ["wan0", "wan1", "wan2"][:r.choice([2, 2, 3])]
    mode = r.choice(["balance-rr", "active-backup", "active-backup", "balance-xor", "balance-xor", "balance-xor", "broadcast"])
    words = f"mode {mode} miimon {r.choice([20, 50])}"
    if mode == "balance-xor":
        words += f" xmit_hash_policy {r.choice(['layer2', 'layer2+3', 'layer3+4', 'layer3+4'])}"
    if mode == "active-backup":
        words += r.choice(["", "", f" primary {slaves[1]}", f" primary {slaves[0]} primary_reselect failure", " all_slaves_active 1"])
    if mode == "balance-rr":
        words += r.choice(["", " packets_per_slave 3"])
    c = ["sysctl -qw net.ipv4.ip_forward=1", "ip addr add 10.0.0.1/24 dev lan0"] + neighbours("lan0", ["10.0.0.11", "10.0.0.12"])
    c += [f"ip link add bond0 type bond {words}"] + [f"ip link set {dev} address 02:00:00:00:0{r.randint(1, 9)}:{r.randint(16, 99)}" for dev in slaves]
    c += r.choice([[], [], ["ip link set bond0 address 02:00:00:00:00:77"]]) + r.choice([[], ["ip link set bond0 mtu 1400"]])
    for dev in slaves:
        c += [f"ip link set {dev} down", f"ip link set {dev} master bond0"]
    c += ["ip link set bond0 up", "ip addr add 192.0.2.1/24 dev bond0"] + neighbours("bond0", ["192.0.2.100", "192.0.2.101"])
    if r.random() < 0.3:
        c += ["ip link add link bond0 name bond0.10 type vlan id 10", "ip link set bond0.10 up", "ip addr add 10.10.0.1/24 dev bond0.10"] + neighbours("bond0.10", ["10.10.0.5"])
    c += queue(r, "bond0") + r.choice([[], ["iptables -A FORWARD -o bond0", "iptables -A INPUT -i bond0"], ["iptables -t nat -A POSTROUTING -o bond0 -j MASQUERADE"]])
    net = ["192.0.2.100", "192.0.2.101"]
    talk = {"lan0": (["10.0.0.11", "10.0.0.12"], net + ["192.0.2.1"])} | {dev: (net, ["10.0.0.11", "10.0.0.12", "192.0.2.1"]) for dev in slaves}
    gone = r.choice([[], [slaves[0]], [slaves[0], slaves[1]], [slaves[-1]]])
    does = [f"ip link set {dev} down" for dev in gone] + [f"ip link set {dev} up" for dev in gone[:1]]
    return ["lan0"] + slaves, c, talk | {"lan0 ": talk["lan0"], "lan0  ": talk["lan0"]}, does


def packet(r, n, src, dst):
    p = {"src": src, "dst": dst, "ip_id": n + 1, "df": r.choice([0, 1]), "proto": r.choice(["udp", "udp", "icmp", "tcp"]), "ttl": r.choice([64, 64, 64, 2, 1]),
         "tos": r.choice([0, 0, 0x10, 0xb8]), "data": r.choice([0, 10, 100, 1000, 1400, 1472])}
    if p["proto"] == "udp":
        p["sport"], p["dport"] = r.randint(1024, 1100), r.choice([8080, 2000, 5353, 9])
    elif p["proto"] == "tcp":
        p["sport"], p["dport"], p["seq"], p["ack"], p["flags"], p["data"] = r.randint(1024, 1100), 80, 1000, 0, "S", 0
    else:
        p["type"], p["code"], p["id"], p["n"] = 8, 0, r.randint(1, 9), n
    return p


def rules_counted():
    """Each rule with its counters, as iptables-save tells them."""
    text = sh("ip netns exec r iptables-legacy-save -c", check=False)
    return sorted(line for line in text.split("\n") if line.startswith("["))


def case(kind, seed):
    r = random.Random(f"{kind.__name__} {seed}")
    wires, commands, talk, *does = kind(r)
    does = does[0] if does else []
    # A router of its own kind does not tell senders of shorter ways.
    commands = [f"sysctl -qw net.ipv4.conf.{dev}.send_redirects=0" for dev in ["all", *wires]] + ["sysctl -qw net.ipv4.icmp_ratelimit=0"] + commands
    spaces.WIRES = wires
    machine = spaces.Machine(commands, False)
    time.sleep(0.3)
    machine.collect()
    steps, began = [], time.monotonic()
    count = r.randint(12, 20)
    when = sorted(r.sample(range(2, count), len(does)))
    for n in range(count):
        if n in when:
            do = does[when.index(n)]
            steps.append({"do": do, "at": int((time.monotonic() - began) * 1000), "out": []})
            sh(f"ip netns exec r {do}")
            time.sleep(0.4)
            machine.collect()
        talks = r.choice(list(talk))
        (froms, to), dev = talk[talks], talks.strip()
        p = packet(r, n, r.choice(froms), r.choice(to))
        outs = [(d, o) for s in steps for d, o in s["out"] if o["proto"] == "udp" and "sport" in o and "frag" not in o]
        if outs and r.random() < 0.25:
            dev, o = r.choice(outs)
            p = {"proto": "udp", "src": o["dst"], "dst": o["src"], "sport": o["dport"], "dport": o["sport"], "ttl": 60, "data": r.choice([10, 1200]), "ip_id": n + 1, "df": 0}
        if "ip link set bond0 mtu 1400" in commands and dev != "lan0":
            p["data"] = min(p["data"], 1300)  # An end of a veth pair takes no frame that is longer than its MTU.
        step = {"in": dev, "packet": p, "at": int((time.monotonic() - began) * 1000)}
        try:
            machine.put(dev, p)
        except OSError:
            pass  # The other end of the wire is down.
        step["out"] = machine.collect()
        steps.append(step)
    counted = machine.counted(True)
    machine.close()
    return {"seed": seed, "kind": kind.__name__, "wires": wires, "setup": commands, "steps": steps, "counted": counted, "rules": rules_counted()}


def main():
    kind, first, count, out = globals()[argv[1]], int(argv[2]), int(argv[3]), argv[4]
    with open(out, "w") as file:
        for seed in range(first, first + count):
            print(json.dumps(case(kind, seed)), file=file, flush=True)


main()
