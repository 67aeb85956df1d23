#!/usr/bin/env python3
"""Records what traceroute, tracepath and mtr print in random networks of network namespaces.

    record.py PROGRAM FIRST COUNT OUT.jsonl

One line for each seed: the network (machines with the commands that made each, links with their delay), and the runs of PROGRAM on the first machine.
Run it inside the user-mode kernel, where time is exact (`penstock kernel build`), with traceroute 2.1.2, iputils 20221126, mtr 0.95, iproute2 6.1 and
iptables 1.8.9 (legacy) in the path.
"""
import json
import os
import random
import socket
import subprocess
import sys
import time

LISTEN = """
import socket, sys
all = []
for family, any in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    for kind, port in ((socket.SOCK_STREAM, 5201), (socket.SOCK_DGRAM, 5001)):
        s = socket.socket(family, kind)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind((any, port))
        if kind == socket.SOCK_STREAM:
            s.listen(100)
        all.append(s)
sys.stdin.read()
"""


def sh(command, check=True):
    return subprocess.run(command, shell=True, check=check, capture_output=True, text=True)


def network(r):
    """A chain of routers; sometimes with a second way between two of them, for packets with some ports, or for those that come back."""
    count = r.choice([0, 1, 1, 2, 2, 3, 3, 4, 5])
    names = ["a"] + [f"r{n}" for n in range(1, count + 1)] + ["b"]
    commands = {name: [] for name in names}
    links = []
    for n in range(len(names) - 1):
        x, y = names[n], names[n + 1]
        dx, dy = ("eth1" if n else "eth0"), "eth0"
        links.append({"ends": [[x, dx], [y, dy]], "delay_us": r.choice([500, 730, 1000, 2500, 4010, 10000, 20005])})
        commands[x] += [f"ip addr add 10.0.{n + 1}.1/24 dev {dx}", f"ip addr add fd00:{n + 1}::1/64 dev {dx} nodad"]
        commands[y] += [f"ip addr add 10.0.{n + 1}.2/24 dev {dy}", f"ip addr add fd00:{n + 1}::2/64 dev {dy} nodad"]
    last = len(names) - 1
    for n, name in enumerate(names):
        if 0 < n < last:
            commands[name] += ["sysctl -qw net.ipv4.ip_forward=1", "sysctl -qw net.ipv6.conf.all.forwarding=1"]
        if n == 0 and count:
            commands[name] += ["ip route add default via 10.0.1.2", "ip -6 route add default via fd00:1::2"]
        if n == last and count:
            commands[name] += [f"ip route add default via 10.0.{last}.1", f"ip -6 route add default via fd00:{last}::1"]
        if 0 < n < last:
            for far in range(1, last + 1):
                if far > n + 1:
                    commands[name] += [f"ip route add 10.0.{far}.0/24 via 10.0.{n + 1}.2",
                                       f"ip -6 route add fd00:{far}::/64 via fd00:{n + 1}::2"]
                if far < n:
                    commands[name] += [f"ip route add 10.0.{far}.0/24 via 10.0.{n}.1",
                                       f"ip -6 route add fd00:{far}::/64 via fd00:{n}::1"]
            # What is farther than the last network is known all the way to the last router, and not there.
            if n < last - 1:
                commands[name] += [f"ip route add 10.9.0.0/16 via 10.0.{n + 1}.2", f"ip -6 route add fd09::/32 via fd00:{n + 1}::2"]
    if count >= 2 and r.random() < 0.35:
        # A second router beside one of them.
        n = r.randrange(1, count)
        one, two = names[n], names[n + 1]
        beside = "s"
        names.insert(-1, beside)
        commands[beside] = []
        links.append({"ends": [[one, "eth2"], [beside, "eth0"]], "delay_us": r.choice([600, 1500, 3000])})
        links.append({"ends": [[beside, "eth1"], [two, "eth2"]], "delay_us": r.choice([600, 1500, 3000])})
        commands[one] += ["ip addr add 10.1.1.1/24 dev eth2", "ip addr add fd01:1::1/64 dev eth2 nodad"]
        commands[beside] += ["ip addr add 10.1.1.2/24 dev eth0", "ip addr add fd01:1::2/64 dev eth0 nodad",
                             "ip addr add 10.1.2.1/24 dev eth1", "ip addr add fd01:2::1/64 dev eth1 nodad",
                             "sysctl -qw net.ipv4.ip_forward=1", "sysctl -qw net.ipv6.conf.all.forwarding=1",
                             "ip route add default via 10.1.2.2", "ip -6 route add default via fd01:2::2",
                             "ip route add 10.0.1.0/24 via 10.1.1.1", "ip -6 route add fd00:1::/64 via fd01:1::1"]
        commands[two] += ["ip addr add 10.1.2.2/24 dev eth2", "ip addr add fd01:2::2/64 dev eth2 nodad"]
        if r.random() < 0.5:
            # Answers come back that way.
            commands[two] += ["ip route replace 10.0.1.0/24 via 10.1.2.1", "ip -6 route replace fd00:1::/64 via fd01:2::1"]
        else:
            for table, add in (("iptables", "ip"), ("ip6tables", "ip -6")):
                via = "10.1.1.2" if add == "ip" else "fd01:1::2"
                first = 33434 + 3 * n + r.choice([0, 1, 2, 4])
                commands[one] += [
                    f"{table} -t mangle -A PREROUTING -i eth0 -p udp --dport {first}:{first + r.choice([0, 1, 3])} -j MARK --set-mark 1",
                    f"{add} rule add fwmark 1 lookup 100", f"{add} route add default via {via} table 100"]
    return names, commands, links, count


REJECTS = ["icmp-net-unreachable", "icmp-host-unreachable", "icmp-proto-unreachable", "icmp-port-unreachable", "icmp-net-prohibited",
           "icmp-host-prohibited", "icmp-admin-prohibited"]
REJECTS6 = ["icmp6-no-route", "icmp6-adm-prohibited", "icmp6-addr-unreachable", "icmp6-port-unreachable", "icmp6-policy-fail", "icmp6-reject-route"]


def trouble(r, names, commands, links, count, hard):
    routers = [name for name in names if name.startswith("r")]
    for name in routers:
        kind = r.random() if not hard else r.choice([0.15, 0.9])
        if kind < 0.12:
            commands[name] += ["iptables -A OUTPUT -p icmp --icmp-type time-exceeded -j DROP",
                               "ip6tables -A OUTPUT -p icmpv6 --icmpv6-type time-exceeded -j DROP"]
        elif kind < 0.2:
            proto = r.choice(["udp", "tcp", "icmp", "all"])
            six = {"icmp": "icmpv6"}.get(proto, proto)
            commands[name] += [f"iptables -A FORWARD -i eth0 -p {proto} -j REJECT --reject-with {r.choice(REJECTS)}",
                               f"ip6tables -A FORWARD -i eth0 -p {six} -j REJECT --reject-with {r.choice(REJECTS6)}"]
        elif kind < 0.26:
            commands[name] += ["iptables -A FORWARD -i eth0 -j DROP", "ip6tables -A FORWARD -i eth0 -j DROP"]
        elif kind < 0.36:
            what = r.choice(["unreachable", "prohibit", "blackhole", "throw"])
            commands[name] += [f"ip route replace {what} 10.9.0.0/16", f"ip -6 route replace {what} fd09::/32"]
    if r.random() < 0.12:
        commands["b"] += ["iptables -A INPUT -p udp -j DROP", "ip6tables -A INPUT -p udp -j DROP"]
    if (hard or r.random() < 0.3) and links:
        link = links[r.randrange(len(links))]
        mtu = r.choice([1280, 1400, 1452, 1492])
        for host, device in link["ends"]:
            commands[host].append(f"ip link set {device} mtu {mtu}")


def target(r, six, count):
    last = count + 1
    own = ("fd00:1::1", "10.0.1.1")
    b = (f"fd00:{last}::2", f"10.0.{last}.2")
    kind = r.random()
    if kind < 0.6:
        to = b if r.random() < 0.7 else ("b", "b")
    elif kind < 0.7:
        near = r.randrange(1, last + 1)
        to = (f"fd00:{near}::2", f"10.0.{near}.2") if near == last or r.random() < 0.7 else (f"r{near}", f"r{near}")
    elif kind < 0.8:
        to = (f"fd00:{last}::77", f"10.0.{last}.77")
    elif kind < 0.92:
        to = ("fd09::1", "10.9.0.1")
    elif kind < 0.96:
        to = own
    else:
        to = ("fd00:1::66", "10.0.1.66")
    return to[0 if six else 1]


def traceroute(r, count, hard=False):
    six = r.random() < 0.4
    words = ["traceroute6" if six and r.random() < 0.3 else "traceroute"]
    if r.random() < 0.7:
        words.append("-n")
    if six and r.random() < 0.3:
        words.append("-6")
    elif not six and r.random() < 0.1:
        words.append("-4")
    method = r.random()
    if method < 0.2:
        words.append(r.choice(["-I", "-I", "-M icmp", "--icmp"]))
        if r.random() < 0.2:
            words.append("-p 100")
    elif method < 0.4:
        words.append(r.choice(["-T", "-T", "-M tcp"]))
        if r.random() < 0.6:
            words.append(r.choice(["-p 5201", "-p 22", "-p5201"]))
    elif method < 0.55:
        words.append("-U")
        if r.random() < 0.6:
            words.append(r.choice(["-p 5001", "-p 40000"]))
    elif r.random() < 0.2:
        words.append(r.choice(["-p 40000", "-p 33440", "--port=50000"]))
    for chance, options in [(0.25, ["-m 1", "-m 2", "-m 5", "-m8"]), (0.3, ["-q 1", "-q 2", "-q 5", "-q1", "-q 10"]),
                            (0.25, ["-w 1", "-w 2,3,10", "-w 0.5", "-w 1,1,1", "-w 3,0,0"]), (0.15, ["-f 2", "-f 1", "--first=3"]),
                            (0.2, ["-N 1", "-N 3", "-N 32", "-N 4"]), (0.15, ["-z 0.1", "-z 20", "-z 1"]), (0.08, ["-i eth0"]),
                            (0.15, ["-F"]), (0.1, ["-t 16", "-t 0"]), (0.15, ["--back"]), (0.07, ["--mtu"])]:
        # Without a socket to wait for traceroute asks for the time again and again, which stands still here.
        if r.random() < chance and (options[0] != "-z 0.1" or {"-I", "-T"} & set(words)):
            words.append(r.choice(options))
    if r.random() < 0.08:
        words.append("-s " + ("fd00:1::1" if six else "10.0.1.1"))
    to = target(r, six, count)
    if six and to.isalnum() and "-6" not in words and "traceroute6" not in words:
        words.append("-6")
    words.append(to)
    if hard:
        words += [r.choice(["-F", "-n"]), r.choice(["1500", "1480", "3000"])]
    elif r.random() < 0.25:
        words.append(r.choice(["60", "100", "1400", "1500", "1480", "2000", "28", "3000"]))
    return " ".join(words)


def tracepath(r, count, hard=False):
    six = r.random() < 0.4
    words = ["tracepath"]
    for chance, options in [(0.7, ["-n"]), (0.15, ["-b"]), (0.3, ["-m 2", "-m 3", "-m 8", "-m 20"]), (0.25, ["-p 5001", "-p 40000"]),
                            (0.3, ["-l 1000", "-l 1500", "-l 1400", "-l 9000", "-l 576"]), (0.3, ["-6"] if six else ["-4"])]:
        if r.random() < chance:
            words.append(r.choice(options))
    words.append(target(r, six, count))
    return " ".join(words)


def mtr(r, count, hard=False):
    six = r.random() < 0.4
    words = ["mtr", r.choice(["-r", "--report", "-r", "-rw", "--csv", "--json", "--raw", "-w", "-C", "-j", "-l", "-x"]), "-n"]
    for chance, options in [(0.9, ["-c 1", "-c 3", "-c 5", "-c 10", "-c2"]), (0.3, ["-i 0.5", "-i 2", "-i 0.2"]), (0.25, ["-s 100", "-s 1400", "-s 28"]),
                            (0.35, ["-u", "--udp"]), (0.3, ["-6"] if six else ["-4"]), (0.2, ["-m 3", "-m 8"]), (0.15, ["-f 2"]),
                            (0.1, ["-P 40000", "-P 5001"]), (0.2, ["-o LSD", "-o \"LSDR NABWV\"", "-o \"LDRSWNBAVJMXI G\""]), (0.15, ["-b"]),
                            (0.1, ["-a " + ("fd00:1::1" if six else "10.0.1.1")]), (0.15, ["-G 1", "-Z 1"]), (0.1, ["-U 2"])]:
        if r.random() < chance:
            words.append(r.choice(options))
    words.append(target(r, six, count))
    return " ".join(words)


MAKERS = {"traceroute": traceroute, "tracepath": tracepath, "mtr": mtr}


def record(program, seed):
    r = random.Random(seed)
    names, commands, links, count = network(r)
    # From 1000 on packets are too long, or refused.
    hard = seed >= 1000
    if hard or r.random() < 0.6:
        trouble(r, names, commands, links, count, hard)
    for name in names:
        sh(f"ip netns add {name} && ip netns exec {name} ip link set lo up")
        sh(f"ip netns exec {name} sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0")
        # No reports of listeners and no questions for routers are wanted.
        sh(f"ip netns exec {name} sysctl -qw net.ipv6.conf.default.router_solicitations=0")
    macs = 0
    for link in links:
        (x, dx), (y, dy) = link["ends"]
        sh(f"ip link add {dx} netns {x} type veth peer name {dy} netns {y}")
        for host, device in link["ends"]:
            macs += 1
            sh(f"ip netns exec {host} ip link set {device} address 02:00:00:00:00:{macs:02x}")
            sh(f"ip netns exec {host} tc qdisc add dev {device} root netem delay {link['delay_us']}us limit 100000")
            sh(f"ip netns exec {host} ip link set {device} up")
    for name in names:
        for c in commands[name]:
            done = sh(f"ip netns exec {name} {c}", check=False)
            if done.returncode:
                raise SystemExit(f"{seed}: {name}: {c}: {done.stderr}")
    hosts = ["127.0.0.1 localhost", "::1 localhost"]
    for name in names:
        hosts += [next(c.split()[3].split("/")[0] for c in commands[name] if c.startswith("ip addr add") and kind in c) + " " + name for kind in (".", ":")]
    for name in names:
        os.makedirs(f"/etc/netns/{name}", exist_ok=True)
        with open(f"/etc/netns/{name}/hosts", "w") as f:
            f.write("\n".join(hosts) + "\n")
    listener = subprocess.Popen(["ip", "netns", "exec", "b", "python3", "-c", LISTEN], stdin=subprocess.PIPE)
    time.sleep(4)
    runs = []
    for _ in range(r.choice([1, 1, 2, 3])):
        line = MAKERS[program](r, count, hard)
        done = sh(f"ip netns exec a {line}", check=False)
        runs.append({"run": line, "out": done.stdout, "err": done.stderr, "status": done.returncode})
        time.sleep(25)
    listener.kill()
    listener.wait()
    for name in names:
        sh(f"ip netns del {name}")
    time.sleep(2)
    return {"seed": seed, "names": names, "links": links, "commands": commands, "runs": runs}


def main():
    program, first, count, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    socket.sethostname("a")
    # One machine here is many there: what all of them say together is not limited.
    sh("sysctl -qw net.ipv4.icmp_msgs_per_sec=1000000 net.ipv4.icmp_msgs_burst=1000000")
    with open(out, "w") as f:
        for seed in range(first, first + count):
            f.write(json.dumps(record(program, seed)) + "\n")
            f.flush()


main()
