#!/usr/bin/env python3
"""Records what two real WireGuard devices say to each other, with random settings and packets.

    wireguard.py FIRST COUNT OUT.jsonl

One line for each seed: the commands of both machines, then steps: how long nothing is done and what goes over the wire in that time by itself; what is done; what goes
over the wire and comes out of the tunnels then, with the kernel's monotonic time of both, ns; at the end the devices' counters. Run it inside the user-mode kernel, where time is exact (`penstock kernel
build`, with WireGuard), beside `six.py`. Nothing outside two network namespaces of its own is touched.
"""
import ctypes
import json
import os
import random
import socket
import struct
import sys
import time

from six import sh

LIBC = ctypes.CDLL(None, use_errno=True)
KEYS = {"a": "6CfEgs6v9bfsFnxXCR4Rlk2Z0N4L5vcZ0l1M8sC5gXU=", "b": "OC3cVSzWTVBL6f27Vh+0hJYFhnfXmQ5TvOqWV9VXu28="}
PUBLIC = {"a": "p0bX4HgKcVUq1/Rx0kdz0lvpav3naAlUSib51N/tOzs=", "b": "swyyLblxjNna0JyaXXEDtwPsDw4V6tmqhC3Akh3t4zA="}
PSKS = ["AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh4="]
OTHER = {"a": "b", "b": "a"}
WIRE = {"a": ("192.0.2.1", "fd00:99::1"), "b": ("192.0.2.2", "fd00:99::2")}
INNER = {"a": ("10.8.0.1", "fd08::1"), "b": ("10.8.0.2", "fd08::2")}
PORT = {"a": 51820, "b": 7777}
# What is tried again and again has a random part each time.
SHORT = [2, 500, 2200, 7700, 12900]
PAUSES = [2, 500, 2200, 7700, 12900, 31000, 66000, 131000, 170000, 200000, 561000]


def enter(name):
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
    if LIBC.setns(fd, 0x40000000) != 0:
        raise SystemExit("setns")
    os.close(fd)


def listen(space, device):
    enter(space)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
    s.bind((device, 3))
    s.setblocking(False)
    return s


def drain(s):
    while True:
        try:
            data, where = s.recvfrom(70000)
        except BlockingIOError:
            return
        except OSError:
            # The device has gone down since: told once.
            continue
        yield data, where[2]


def ip_of(data):
    """Version, type of service, time to live, length, protocol, payload, addresses."""
    if data[0] >> 4 == 4:
        return 4, data[1], data[8], struct.unpack("!H", data[2:4])[0], data[9], data[20:], data[12:16], data[16:20]
    tc = struct.unpack("!I", data[:4])[0] >> 20 & 0xff
    return 6, tc, data[7], 40 + struct.unpack("!H", data[4:6])[0], data[6], data[40:], data[8:24], data[24:40]


def text(addr):
    return socket.inet_ntop(socket.AF_INET if len(addr) == 4 else socket.AF_INET6, addr)


def wire(s):
    out = []
    for data, kind in drain(s):
        if data[0] >> 4 not in (4, 6):
            continue
        v, tos, ttl, length, proto, body, _, _ = ip_of(data)
        if proto != 17 or len(body) < 12:
            continue
        sport, dport = struct.unpack("!HH", body[:4])
        if not {sport, dport} & set(PORT.values()):
            continue
        p = {"from": "a" if kind == 4 else "b", "type": body[8], "v": v, "len": length, "tos": tos, "ttl": ttl, "sport": sport, "dport": dport}
        if body[8] == 4:
            p["counter"] = struct.unpack("<Q", body[16:24])[0]
        out.append(p)
    return out


def inner(sockets):
    out = []
    for side, s in sockets.items():
        for data, kind in drain(s):
            if kind == 4:
                continue
            _, tos, ttl, length, proto, _, src, dst = ip_of(data)
            if proto == 17:
                out.append({"at": side, "src": text(src), "dst": text(dst), "len": length, "tos": tos, "ttl": ttl})
    return out


def peer(rng, side, known):
    other = OTHER[side]
    words = f"peer {PUBLIC[other]}"
    allowed = rng.choice([f"{INNER[other][0]}/32,{INNER[other][1]}/128", "10.8.0.0/24,fd08::/64", f"{INNER[other][0]}/32", "0.0.0.0/0,::/0"])
    words += f" allowed-ips {allowed}"
    if known:
        addr = rng.choice(WIRE[other])
        words += f" endpoint {'[' + addr + ']' if ':' in addr else addr}:{PORT[other]}"
    if rng.random() < 0.4:
        words += f" persistent-keepalive {rng.choice([7, 25, 60])}"
    return words


def case(seed):
    rng = random.Random(seed)
    sh("ip netns del a; ip netns del b", check=False)
    sh("ip netns add a; ip netns add b; ip -n a link add wire type veth peer name wire netns b")
    commands = {"a": [], "b": []}
    psk = rng.choice([None, None, [0, 0], [0, 0], [0, 1], [0, None]]) or [None, None]
    mtu = rng.choice([1420, 1420, 1400, 1280, 1381])
    for n, side in enumerate("ab"):
        for name, value in (("key", KEYS[side]), ("psk0", PSKS[0]), ("psk1", PSKS[1])):
            with open(f"/tmp/{side}.{name}", "w", encoding="ascii") as f:
                f.write(value + "\n")
        known = side == "a" or rng.random() < 0.5
        words = peer(rng, side, known)
        if psk[n] is not None:
            words += f" preshared-key /tmp/{side}.psk{psk[n]}"
        commands[side] += [
            f"ip addr add {WIRE[side][0]}/24 dev wire", f"ip -6 addr add {WIRE[side][1]}/64 dev wire nodad", "ip link set wire up",
            "ip link add wg0 type wireguard", f"wg set wg0 listen-port {PORT[side]} private-key /tmp/{side}.key {words}",
            f"ip addr add {INNER[side][0]}/24 dev wg0", f"ip -6 addr add {INNER[side][1]}/64 dev wg0", f"ip link set wg0 mtu {mtu}",
        ]
    for side in "ab":
        # So that one thing happens after the other.
        sh(f"ip netns exec {side} tc qdisc add dev wire root netem delay 1ms rate 100mbit limit 10000")
        for command in commands[side]:
            sh(f"ip netns exec {side} {command}")
    enter("a")
    taps = {"a": None, "b": None}
    line = listen("a", "wire")
    ends = []
    for side in "ab":
        taps[side] = listen(side, "wg0")
        # Somebody listens, and reads nothing.
        ends.append(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
        ends[-1].bind(("::", 9000))
    time.sleep(5)
    wire(line)
    began = time.monotonic_ns()
    steps = []

    def step(pause, do):
        time.sleep(pause / 1000)
        at = time.monotonic_ns()
        idle = wire(line)
        inner(taps)
        if "cmd" in do:
            sh(f"ip netns exec {do['side']} {do['cmd']}", check=False)
        else:
            enter(do["side"])
            six = ":" in do["dst"]
            s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
            if six:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, do["tos"])
            else:
                s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, do["tos"])
            for _ in range(do["count"]):
                try:
                    s.sendto(bytes(do["data"]), (do["dst"], 9000))
                except OSError:
                    pass
            s.close()
        time.sleep(0.06)
        steps.append({"at": at, "until": time.monotonic_ns(), "idle": idle, "do": do, "wire": wire(line), "inner": inner(taps)})

    for side in rng.sample("ab", 2):
        step(rng.choice([2, 2, 500]), {"side": side, "cmd": "ip link set wg0 up"})
    for _ in range(rng.randint(6, 16)):
        side = rng.choice("aab")
        pause = rng.choice(PAUSES if psk[0] == psk[1] else SHORT)
        draw = rng.random()
        if draw < 0.75:
            step(pause, {
                "side": side, "dst": rng.choice(INNER[OTHER[side]] + ("10.8.0.77",)), "data": rng.choice([0, 1, 20, 100, 333, 700, mtu - 60, mtu - 48]),
                "tos": rng.choice([0, 0, 1, 2, 0xb8, 0x28]), "count": rng.choice([1, 1, 1, 3, 140]),
            })
        elif draw < 0.83:
            step(pause, {"side": side, "cmd": f"wg set wg0 peer {PUBLIC[OTHER[side]]} persistent-keepalive {rng.choice(['off', 7, 25])}"})
        elif draw < 0.88:
            step(pause, {"side": side, "cmd": f"wg set wg0 peer {PUBLIC[OTHER[side]]} remove"})
            again = peer(rng, side, rng.random() < 0.7)
            own = psk["ab".index(side)]
            step(2, {"side": side, "cmd": f"wg set wg0 {again}" + ("" if own is None else f" preshared-key /tmp/{side}.psk{own}")})
        elif draw < 0.94:
            step(pause, {"side": side, "cmd": "ip link set wg0 down"})
            step(2, {"side": side, "cmd": "ip link set wg0 up"})
        else:
            step(pause, {"side": side, "cmd": f"wg set wg0 {peer(rng, side, True)}"})
    end = {}
    for side in "ab":
        stats = json.loads(sh(f"ip netns exec {side} ip -j -s link show wg0"))[0]["stats64"]
        end[side] = {
            "transfer": sh(f"ip netns exec {side} wg show wg0 transfer").split()[1:], "allowed": sh(f"ip netns exec {side} wg show wg0 allowed-ips"),
            "rx": [stats["rx"][k] for k in ("packets", "bytes", "errors")], "tx": [stats["tx"][k] for k in ("packets", "bytes", "errors", "dropped")],
        }
    for s in [line, *taps.values(), *ends]:
        s.close()
    return {"seed": seed, "began": began, "commands": commands, "steps": steps, "end": end}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    time.sleep(1)
    with open(out, "w", encoding="ascii") as f:
        for seed in range(first, first + count):
            f.write(json.dumps(case(seed)) + "\n")
            f.flush()


main()
