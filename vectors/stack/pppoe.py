#!/usr/bin/env python3
"""Records what pppd and pppoe-server say over Ethernet, and what becomes of packets between them, with random options and packets.

    pppoe.py FIRST COUNT OUT.jsonl

One line for each seed: the options of both ends, the datagrams that are sent, and the frames on the wire in their order, as far as each end sent them: code or
protocol, length, session; at the end the devices' counters. pppoe-server begins pppd as its option -k would have it. Needs root, pppd 2.4.9 with rp-pppoe.so, pppoe-server 3.15 and the
recorder's kernel. Runs in network namespaces of its own.
"""
import ctypes
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
KERNEL_MODE = """#!/usr/bin/env python3
import os, re, sys
args = sys.argv[1:]
i = args.index("pty")
nic, sid, mac = re.search(r"-I (\\S+) -e (\\d+):(\\S+)", args[i + 1]).groups()
os.execvp("pppd", ["pppd", "plugin", "rp-pppoe.so", "nic-" + nic, "rp_pppoe_sess", f"{sid}:{mac}"] + args[:i] + args[i + 2:])
"""


def sh(line, check=True):
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise SystemExit(f"{line}: {done.stdout}{done.stderr}")
    return done.stdout


def enter(name):
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
    if LIBC.setns(fd, 0x40000000) != 0:
        raise SystemExit("setns")
    os.close(fd)


def frames(tap):
    """What came by: sender, ethertype, code or protocol, and of a message of PPP its code and number, length, session."""
    out = []
    while True:
        try:
            data, where = tap.recvfrom(70000)
        except BlockingIOError:
            return out
        kind = struct.unpack("!H", data[12:14])[0]
        if kind not in (0x8863, 0x8864):
            continue
        _, code, sid, length = struct.unpack("!BBHH", data[14:20])
        frame = {"from": "a" if where[2] == 4 else "b", "disc": kind == 0x8863, "code": code, "sid": sid, "said": length, "len": len(data)}
        if kind == 0x8864:
            frame["proto"] = struct.unpack("!H", data[20:22])[0]
            if frame["proto"] >= 0x8000:
                frame["ppp"] = list(data[22:24])
        out.append(frame)


def case(seed):
    rng = random.Random(seed)
    sh("ip netns del a; ip netns del b", check=False)
    sh("ip netns add a; ip netns add b; ip -n a link add eth1 type veth peer name eth0 netns b")
    for space, device in (("a", "eth1"), ("b", "eth0")):
        sh(f"ip netns exec {space} sysctl -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        sh(f"ip -n {space} link set {device} up")
        sh(f"ip netns exec {space} tc qdisc add dev {device} root netem delay 20ms limit 10000")
    mtu = rng.choice([1492, 1492, 1400, 1280])
    client = f"plugin rp-pppoe.so eth1 user alice noauth noipdefault noipv6 mtu {mtu} mru {mtu}"
    server = "noipv6"
    if rng.random() < 0.7:
        server += " require-pap"
    else:
        server += " noauth"
    if rng.random() < 0.5:
        client += " usepeerdns"
    if rng.random() < 0.5:
        server += " ms-dns 9.9.9.9"
    if rng.random() < 0.3:
        server += " ms-dns 1.1.1.1"
    if rng.random() < 0.5:
        client += " defaultroute"
    for end in (0, 1):
        if rng.random() < 0.5:
            words = f" lcp-echo-interval {rng.choice([2, 7])} lcp-echo-failure 3"
            client, server = (client + words, server) if end == 0 else (client, server + words)
    options = f"-I eth0 -L 10.0.0.1 -R 10.0.0.{rng.choice([2, 50])} -N 8 -C {rng.choice(['isp', 'ac-of-berlin'])}"
    if rng.random() < 0.5:
        options += " -S internet"
    with open("/etc/ppp/server", "w", encoding="ascii") as f:
        f.write(server + "\n")
    enter("a")
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
    tap.bind(("eth1", 3))
    tap.setblocking(False)
    sh(f"ip netns exec b pppoe-server {options} -O /etc/ppp/server -q /usr/local/pppd-kernel-mode")
    began = time.monotonic_ns()
    daemon = subprocess.Popen(["pppd", *client.split(), "nodetach"], stdout=subprocess.DEVNULL)
    time.sleep(1.5)
    dial = frames(tap)
    shown = {space: sh(f"ip -n {space} addr show ppp0; ip -n {space} route").replace(" \n", "\n") for space in "ab"}
    socks = {}
    for space in "ab":
        enter(space)
        socks[space] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        socks[space].bind(("0.0.0.0", 9000))
    remote = options.split("-R ")[1].split()[0]
    to = {"a": "10.0.0.1", "b": remote}
    steps = []
    for _ in range(rng.randint(5, 15)):
        side, size, tos = rng.choice("ab"), rng.choice([0, 1, 100, 700, mtu - 28, mtu - 27, 3000]), rng.choice([0, 0, 0xb8, 0x28])
        socks[side].setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        # IP_MTU_DISCOVER: fragments are made
        socks[side].setsockopt(socket.IPPROTO_IP, 10, 0)
        socks[side].sendto(bytes(size), (to[side], 9000))
        time.sleep(0.3)
        steps.append({"side": side, "data": size, "tos": tos, "wire": frames(tap)})
    stats = {}
    for space in "ab":
        s = json.loads(sh(f"ip -n {space} -j -s link show ppp0"))[0]["stats64"]
        stats[space] = [s["rx"]["packets"], s["rx"]["bytes"], s["tx"]["packets"], s["tx"]["bytes"]]
    daemon.terminate()
    daemon.wait()
    time.sleep(0.5)
    end = frames(tap)
    sh("pkill -x pppoe-server", check=False)
    time.sleep(0.2)
    for s in (tap, *socks.values()):
        s.close()
    return {"seed": seed, "began": began, "client": client, "server": server, "options": options, "dial": dial, "shown": shown, "steps": steps, "stats": stats, "end": end}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    os.makedirs("/etc/ppp", exist_ok=True)
    with open("/usr/local/pppd-kernel-mode", "w", encoding="ascii") as f:
        f.write(KERNEL_MODE)
    os.chmod("/usr/local/pppd-kernel-mode", 0o755)
    for name in ("pap-secrets", "chap-secrets"):
        with open(f"/etc/ppp/{name}", "w", encoding="ascii") as f:
            f.write('"alice" * "secret" *\n')
        os.chmod(f"/etc/ppp/{name}", 0o600)
    open("/etc/ppp/options", "w", encoding="ascii").close()
    with open(out, "w", encoding="ascii") as f:
        for seed in range(first, first + count):
            f.write(json.dumps(case(seed)) + "\n")
            f.flush()


main()
