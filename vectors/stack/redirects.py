#!/usr/bin/env python3
"""Records how redirects of ICMP are sent and followed.

    redirects.py FIRST COUNT OUT.jsonl

One line for each seed. Host a and routers r1 and r2 are on one wire (a bridge of its own namespace), host c is behind r2; a's gateway is r1, which sends on to r2.
Steps at their instants: commands, pings and datagrams from a; of each what it printed, and at the end what a and r1 have sent on the wire, to whom. Run it inside the
user-mode kernel, where time is exact. Nothing outside the network namespaces it makes is touched."""
import ctypes
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
MACS = {"a": "02:00:00:00:00:0a", "r1": "02:00:00:00:00:01", "r2": "02:00:00:00:00:02"}
LAN = {"a": "10.1.0.10", "r1": "10.1.0.1", "r2": "10.1.0.2"}


def sh(c):
    subprocess.run(c, shell=True, check=True)


def enter(ns):
    fd = os.open(f"/run/netns/{ns}", os.O_RDONLY)
    assert libc.setns(fd, 0x40000000) == 0
    os.close(fd)


def said(ns, c):
    p = subprocess.run(c.split(), capture_output=True, text=True, preexec_fn=lambda: enter(ns))
    return [p.returncode, p.stdout, p.stderr]


def sleep_until(ns):
    class Timespec(ctypes.Structure):
        _fields_ = [("s", ctypes.c_long), ("n", ctypes.c_long)]
    libc.clock_nanosleep(1, 1, ctypes.byref(Timespec(*divmod(ns, 10**9))), None)


def scenario(seed):
    r = random.Random(f"redirects {seed}")
    setup = []
    for ns, keys in (("r1", ["send_redirects", "shared_media", "accept_redirects"]), ("a", ["accept_redirects", "shared_media", "secure_redirects"])):
        for key in keys:
            for of in ("all", "eth0"):
                if r.random() < 0.3:
                    setup.append([ns, f"sysctl -w net.ipv4.conf.{of}.{key}={r.choice([0, 0, 1])}"])
    if r.random() < 0.2:
        setup.append(["a", "sysctl -w net.ipv4.ip_forward=1"])
    if r.random() < 0.25:
        # A gateway that a's routes name.
        setup.append(["a", "ip route add 10.77.0.0/16 via 10.1.0.2"])
    if r.random() < 0.2:
        # Another network on the same wire.
        setup += [["a", "ip addr add 10.9.0.10/24 dev eth0"], ["r2", "ip addr add 10.9.0.2/24 dev eth0"]]
        if r.random() < 0.5:
            setup.append(["r1", "ip route replace 10.2.0.0/24 via 10.9.0.2 dev eth0 onlink"])
    if r.random() < 0.2:
        # To r2 itself by way of r1.
        setup.append(["a", "ip route add 10.1.0.2/32 via 10.1.0.1"])
    steps, at = [], 0
    for _ in range(r.choice([3, 4, 5, 7])):
        to = r.choice(["10.2.0.1", "10.2.0.1", "10.2.0.1", "10.2.0.2", "10.1.0.2"])
        kind = r.random()
        if kind < 0.45:
            # ping waits in ticks: few of them.
            n, gap = r.choice([1, 2, 3, 5]), r.choice([0.25, 0.7, 1, 1.3])
            options = r.choice(["", "", "", " -q", " -s 1000"])
            steps.append({"at_ms": at, "ns": "a", "do": f"ping -n -c {n} -i {gap}{options} {to}"})
            at += int(n * gap * 1000) + 12000
        elif kind < 0.7:
            n, gap = r.choice([1, 2, 5, 12, 25]), r.choice([15, 100, 200, 900, 3000])
            steps.append({"at_ms": at, "ns": "a", "udp": [n, gap]})
            at += n * gap + 2000
        else:
            do = r.choice([["a", "sysctl -w net.ipv4.route.flush=1"], ["a", "ip route replace default via 10.1.0.1"], ["a", f"ip route get {to}"], ["a", f"ip route get {to}"],
                           ["a", f"ip route get {to}"], ["a", "ip route add 10.2.0.0/24 via 10.1.0.1"], ["a", "ip route del 10.2.0.0/24"], ["a", "ip neigh flush all"],
                           ["a", "ip link set eth0 down"], ["r1", "sysctl -w net.ipv4.conf.all.send_redirects=0"]])
            steps.append({"at_ms": at, "ns": do[0], "do": do[1]})
            at += 500
            if "down" in do[1]:
                steps += [{"at_ms": at, "ns": "a", "do": "ip link set eth0 up"}, {"at_ms": at + 100, "ns": "a", "do": "ip route add default via 10.1.0.1"}]
                at += 600
        if r.random() < 0.5:
            steps.append({"at_ms": at, "ns": "a", "do": f"ip route get {to}"})
            at += 300
        at += r.choice([0, 0, 0, 24000])
    return {"name": f"redirects {seed}", "setup": setup, "steps": steps}


def network(s):
    for ns in ("sw", "a", "r1", "r2", "c"):
        sh(f"ip netns add {ns}; ip -n {ns} link set lo up; ip netns exec {ns} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
    sh("ip -n sw link add br0 type bridge; ip -n sw link set br0 up")
    for ns, mac in MACS.items():
        sh(f"ip -n {ns} link add eth0 address {mac} type veth peer name p{ns} netns sw; ip -n sw link set p{ns} master br0 up")
        sh(f"ip -n {ns} addr add {LAN[ns]}/24 dev eth0; ip -n {ns} link set eth0 up")
    sh("ip -n r2 link add eth1 type veth peer name eth0 netns c; ip -n r2 addr add 10.2.0.254/24 dev eth1; ip -n r2 link set eth1 up")
    sh("ip -n c addr add 10.2.0.1/24 dev eth0; ip -n c addr add 10.2.0.2/24 dev eth0; ip -n c link set eth0 up; ip -n c route add default via 10.2.0.254")
    sh("ip -n a route add default via 10.1.0.1; ip -n r1 route add 10.2.0.0/24 via 10.1.0.2")
    sh("ip netns exec r1 sysctl -qw net.ipv4.ip_forward=1; ip netns exec r2 sysctl -qw net.ipv4.ip_forward=1")
    time.sleep(1)


def kind(f):
    """A frame in a word or two."""
    if f[12:14] == b"\x08\x06":
        return f"arp {int.from_bytes(f[20:22], 'big')} {socket.inet_ntoa(f[38:42])}"
    ip = f[14:]
    if f[12:14] != b"\x08\x00":
        return None
    if ip[9] == 17:
        return f"udp {socket.inet_ntoa(ip[16:20])}"
    if ip[9] != 1:
        return None
    ty, code = ip[20], ip[21]
    if ty == 5:
        return f"redirect {code} {socket.inet_ntoa(ip[24:28])} of {socket.inet_ntoa(ip[44:48])}"
    return f"icmp {ty} {code} {socket.inet_ntoa(ip[16:20])}"


def tap(ns):
    enter(ns)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
    s.bind(("eth0", 3))
    s.setsockopt(socket.SOL_SOCKET, 35, 1)
    s.setblocking(False)
    return s


def taken(s, start):
    names = {bytes.fromhex(mac.replace(":", "")): ns for ns, mac in MACS.items()}
    out = []
    wall = time.time_ns() - time.monotonic_ns()
    while True:
        try:
            f, anc, _, addr = s.recvmsg(2000, 100)
        except BlockingIOError:
            return out
        except OSError:
            # The device was down for a while.
            continue
        if addr[2] != 4 or kind(f) is None:
            continue
        sec, ns = struct.unpack("qq", anc[0][2][:16])
        out.append([(sec * 10**9 + ns - wall - start) // 1000, names.get(f[:6], "all"), kind(f)])


def run(s):
    libc.prctl(29, 1, 0, 0, 0)
    network(s)
    taps = [tap("a"), tap("r1")]
    if os.fork() == 0:
        enter("c")
        d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        d.bind(("10.2.0.1", 9))
        time.sleep(10**6)
    s["said"] = [said(ns, c) for ns, c in s["setup"]]
    enter("a")
    start = (time.monotonic_ns() // 10**9 + 2) * 10**9 + 3_700_000
    for step in s["steps"]:
        sleep_until(start + step["at_ms"] * 10**6)
        if "udp" in step:
            n, gap = step["udp"]
            d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            d.connect(("10.2.0.1", 9))
            for i in range(n):
                sleep_until(start + (step["at_ms"] + i * gap) * 10**6)
                try:
                    d.send(b"u" * 100)
                except OSError:
                    pass
            d.close()
        else:
            step["said"] = said(step["ns"], step["do"])
            if step["do"].startswith("ping"):
                text = re.sub(r" time=[0-9.]+ ms", "", step["said"][1])
                step["said"][1] = "".join(line + "\n" for line in text.split("\n") if line and not line.startswith("rtt") and "packets transmitted" not in line)
    time.sleep(5)
    return dict(s, start_ns=start, a=taken(taps[0], start), r1=taken(taps[1], start))


first, count = int(sys.argv[1]), int(sys.argv[2])
with open(sys.argv[3], "w") as out:
    for seed in range(first, first + count):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            assert libc.unshare(0x40020000) == 0
            sh("mount --make-rprivate /; mkdir -p /run/netns; mount -t tmpfs none /run/netns")
            line = json.dumps(run(scenario(seed)), separators=(",", ":"))
            with os.fdopen(w, "w") as f:
                f.write(line)
            os.killpg(0, 9)
        os.close(w)
        text = os.fdopen(r).read()
        os.waitpid(pid, 0)
        if text:
            out.write(text + "\n")
        else:
            print(f"{seed}: no answer", file=sys.stderr)
        out.flush()
