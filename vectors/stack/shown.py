#!/usr/bin/env python3
"""Records what a real machine says of addresses, rules, bridges and bonds: random commands of `ip` and `bridge`, and what these show then.

    shown.py FIRST COUNT OUT.jsonl

Seeds: 1 to 99 addresses, 101 to 199 rules, 201 to 299 bridges and bonds. Devices: d0 and d1 (dummy), v0 and v1 (a veth pair), whose
addresses are set.
"""
import json
import random
import subprocess
import sys

BEGIN = [
    "ip link add d0 address 02:00:00:00:00:01 type dummy",
    "ip link add d1 address 02:00:00:00:00:02 type dummy",
    "ip link add v0 address 02:00:00:00:00:03 type veth peer name v1 address 02:00:00:00:00:04",
    "ip link set v0 addrgenmode none",
    "ip link set v1 addrgenmode none",
    "ip link set d0 up",
]


def addresses(r):
    own4 = ["10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/25", "10.0.1.1/24", "10.0.1.2/32", "192.168.5.1/16", "224.5.5.5/32"]
    own6 = ["fd00:1::1/64", "fd00:1::2/64", "fd00:2::1/64", "fd00:2::1/60", "fd00:3::1/128", "ff05::5/128", "fd00:4::1/127"]

    def words(six):
        all = []
        if r.random() < 0.5:
            all += [r.choice(["metric", "priority", "preference"]), str(r.choice([0, 5, 50, 256, 1024, 4096]))]
        if r.random() < 0.15:
            all.append("noprefixroute")
        if six:
            for flag, p in ("nodad", 0.4), ("home", 0.2), ("mngtmpaddr", 0.15), ("autojoin", 0.1):
                if r.random() < p:
                    all.append(flag)
        elif r.random() < 0.2:
            all += ["scope", r.choice(["link", "global", "host"])]
        elif r.random() < 0.2:
            all += ["brd", r.choice(["+", "10.0.0.255"])]
        if r.random() < 0.1:
            all.append(r.choice(["tentative", "deprecated", "home", "nodad"]))
        return " ".join(all)

    def one():
        six = r.random() < 0.5
        addr = r.choice(own6 if six else own4)
        if r.random() < 0.15:
            peer = r.choice(["fd00:7::1/64", "fd00:1::9/128"] if six else ["10.9.0.1/24", "10.0.0.77/32"])
            addr = addr.split("/")[0] + " peer " + peer
        return addr, six

    lines = []
    for _ in range(r.randrange(12, 22)):
        addr, six = one()
        verb = r.choice(["add", "add", "add", "add", "change", "replace", "del"])
        line = f"ip addr {verb} {addr} dev d0"
        lines.append(line + " " + words(six) if verb != "del" else line)
        if r.random() < 0.08:
            lines += ["ip link set d0 down", "ip link set d0 up"]
        if r.random() < 0.06:
            lines.append("ip addr flush dev d0 " + r.choice(["scope global", "to 10.0.0.0/16", "scope link"]))
        lines.append(r.choice(["ip addr show dev d0", "ip route", "ip -6 route show dev d0", "ip -j addr show dev d0", "ip -br addr show dev d0"]))
    return lines + ["ip addr show dev d0", "ip route", "ip -6 route show dev d0", "ip route show table local", "ip -o addr show dev d0"]


def rules(r):
    def what():
        all = []
        if r.random() < 0.1:
            all.append("not")
        if r.random() < 0.5:
            all += ["from", r.choice(["10.0.0.0/8", "10.0.0.1", "all", "10.0.0.1/24", "0/0"])]
        if r.random() < 0.3:
            all += ["to", r.choice(["10.1.0.0/16", "192.0.2.1", "default"])]
        if r.random() < 0.25:
            all += ["fwmark", r.choice(["5", "0x10/0xf0", "7/7", "0"])]
        if r.random() < 0.15:
            all += [r.choice(["iif", "oif", "dev"]), r.choice(["d0", "d1", "lo", "nosuch"])]
        if r.random() < 0.15:
            all += [r.choice(["tos", "dsfield"]), r.choice(["0x10", "0x08", "0x20", "0x01", "0"])]
        if r.random() < 0.1:
            all += ["ipproto", r.choice(["tcp", "udp", "17", "89"])]
        if r.random() < 0.1:
            all += [r.choice(["sport", "dport"]), r.choice(["80", "1000-2000", "5-4"])]
        if r.random() < 0.1:
            all += ["uidrange", r.choice(["0-10", "1000-2000"])]
        if r.random() < 0.6:
            all += [r.choice(["pref", "priority", "order"]), str(r.choice([10, 20, 30, 40, 50, 60, 70]))]
        if r.random() < 0.15:
            all += ["realms", r.choice(["5", "7/8", "9/", "foo"])]
        if r.random() < 0.15:
            all += ["protocol", r.choice(["static", "bird", "99", "boot"])]
        if r.random() < 0.12:
            all += [r.choice(["suppress_prefixlength", "sup_pl"]), str(r.choice([0, 8, 24]))]
        if r.random() < 0.12:
            all += [r.choice(["suppress_ifgroup", "sup_group"]), r.choice(["5", "default", "foo"])]
        p = r.random()
        if p < 0.45:
            all += [r.choice(["lookup", "table"]), r.choice(["100", "main", "local", "200", "default", "foo"])]
        elif p < 0.6:
            all += ["goto", str(r.choice([20, 30, 40, 50, 60, 70, 5]))]
        elif p < 0.75:
            all += r.choice([["nop"], ["type", "nop"], ["blackhole"], ["prohibit"], ["unreachable"], ["type", "blackhole"]])
        return " ".join(all)

    lines = ["ip link set d1 group 5"]
    for _ in range(r.randrange(15, 25)):
        verb = r.choice(["add", "add", "add", "del"])
        lines.append(f"ip rule {verb} {what()}".strip())
        if r.random() < 0.06:
            lines.append(r.choice(["ip link del d1", "ip rule flush table 100", "ip rule flush", "ip rule flush protocol bird"]))
        lines.append(r.choice(["ip rule", "ip rule", "ip -d rule", "ip -j rule", "ip rule show table 100", "ip rule show pref 30", "ip rule list protocol static"]))
    return lines + ["ip rule", "ip -d rule", "ip -j -d rule"]


def bridges(r):
    def set_bridge():
        return r.choice([
            "forward_delay " + r.choice(["200", "400", "3000"]), "hello_time 100", "max_age " + r.choice(["600", "1000"]),
            "ageing_time " + r.choice(["0", "1000", "30000"]), "stp_state " + r.choice("01"), "priority " + r.choice(["0", "1000", "32768"]),
            "vlan_filtering " + r.choice("01"), "vlan_protocol " + r.choice(["802.1q", "802.1ad"]), "vlan_default_pvid " + r.choice(["0", "1", "7"]),
            "mcast_snooping " + r.choice("01"), "no_linklocal_learn " + r.choice("01"), "vlan_stats_enabled 1"])

    def set_port():
        return r.choice([
            "cost " + r.choice(["4", "50", "100"]), "priority " + r.choice(["0", "8", "63"]),
            r.choice(["hairpin", "guard", "root_block", "learning", "flood", "isolated", "mcast_flood", "bcast_flood", "neigh_suppress",
                      "proxy_arp", "fastleave", "locked", "mcast_to_unicast", "vlan_tunnel"]) + " " + r.choice(["on", "off"]),
            "mcast_router " + r.choice("012"), "group_fwd_mask 8"])

    lines = ["ip link add br0 address 02:00:00:00:00:09 type bridge " + " ".join(set_bridge() for _ in range(r.randrange(0, 3)))]
    lines += ["ip link set br0 addrgenmode none", "ip -d link show br0", "ip link set v1 master br0"]
    mode = r.choice(["balance-rr", "active-backup", "balance-xor", "broadcast", "1", "2"])
    lines.append(f"ip link add bo address 02:00:00:00:00:08 type bond mode {mode} miimon {r.choice(['0', '50', '100'])}"
                 + r.choice(["", " xmit_hash_policy layer2+3", " num_grat_arp 3", " min_links 1", " lacp_rate fast", " resend_igmp 4",
                             " lp_interval 5", " updelay 200 downdelay 100"]))
    lines += ["ip link set bo addrgenmode none", "ip -d link show bo"]
    for _ in range(r.randrange(6, 12)):
        lines.append(r.choice([
            "ip link set br0 type bridge " + set_bridge(), "ip link set v1 type bridge_slave " + set_port(),
            "bridge link set dev v1 " + set_port(), "ip link set d0 down", "ip link set d0 master bo", "ip link set d1 master bo",
            "ip link set bo up", "ip link set d0 nomaster", "ip link set bo type bond " + r.choice(["primary d0", "miimon 20", "primary_reselect better"]),
            "ip link set v1 master br0", "ip link set v1 nomaster", "ip link set br0 promisc on", "ip link set br0 promisc off"]))
        lines.append(r.choice([
            "ip -d link show br0", "ip -d link show v1", "ip -d -j link show br0", "ip -d -j link show v1", "bridge -d link", "bridge link",
            "bridge -d -j link", "ip -d link show bo", "ip -d -j link show bo", "ip -d link show d0", "ip -d -j link show d0", "ip -d link show d1"]))
    return lines + ["ip -d link show br0", "ip -d link show v1", "ip -d link show bo", "ip -d link show d0", "bridge -d link"]


def record(seed):
    r = random.Random(seed)
    lines = (addresses if seed < 100 else rules if seed < 200 else bridges)(r)
    steps = []
    for line in BEGIN + [" ".join(line.split()) for line in lines]:
        done = subprocess.run(line.split(), capture_output=True, text=True, errors="replace", timeout=20)
        steps.append({"run": line, "out": done.stdout, "err": done.stderr, "status": done.returncode})
    return {"seed": seed, "steps": steps}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(out, "w") as f:
        for seed in range(first, first + count):
            # Each in a namespace of its own.
            if "--one" in sys.argv:
                f.write(json.dumps(record(seed), separators=(",", ":")) + "\n")
                continue
            part = subprocess.run(["unshare", "-n", sys.executable, sys.argv[0], str(seed), "1", "/dev/stdout", "--one"],
                                  check=True, capture_output=True, text=True)
            f.write(part.stdout)
            f.flush()


if __name__ == "__main__":
    main()
