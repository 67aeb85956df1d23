#!/usr/bin/env python3
"""Records what a real machine does with addresses that are valid for some time, and with routes that expire.

    lifetimes.py FIRST COUNT OUT.jsonl

One line for each seed: commands and the time of each (the kernel's monotonic clock, ns), and what `ip` shows in between. Run it inside the user-mode kernel,
where time is exact (`penstock kernel build`), with iproute2 6.1 in the path. Nothing outside a network namespace of its own is touched.
"""
import json
import random
import subprocess
import sys
import time

SHOWN = ["ip -4 addr show dev lan0", "ip -6 addr show dev lan0", "ip -6 route", "ip -j -6 route"]


def sh(command, check=True):
    return subprocess.run(command, shell=True, check=check, capture_output=True, text=True)


def life(r):
    valid = r.choice([3, 7, 12, 20, 33, 60, 130, 250, "forever"])
    most = 300 if valid == "forever" else valid
    preferred = r.choice([0, 1, most // 2, most, max(1, most - 1)])
    if valid == "forever" and r.random() < 0.3:
        preferred = "forever"
    return f" valid_lft {valid} preferred_lft {preferred}"


def command(r):
    four = f"10.0.{r.randrange(2)}.{r.randrange(1, 4)}/24"
    six = f"fd00:{r.randrange(2)}::{r.randrange(1, 4)}/{r.choice([64, 64, 64, 80])}"
    kind = r.random()
    if kind < 0.45:
        verb = r.choice(["add", "add", "replace", "change"])
        extra = " noprefixroute" if r.random() < 0.1 else ""
        with_life = life(r) if r.random() < 0.8 else ""
        return f"ip addr {verb} {six if r.random() < 0.7 else four} dev lan0{extra}{with_life}"
    if kind < 0.6:
        return f"ip addr del {six if r.random() < 0.7 else four} dev lan0"
    if kind < 0.75:
        expires = f" expires {r.choice([1, 5, 9, 31, 70])}" if r.random() < 0.8 else ""
        verb = r.choice(["add", "add", "replace", "append"])
        return f"ip -6 route {verb} fd0{r.randrange(1, 4)}::/32 via fe80::{r.randrange(1, 3)} dev lan0{expires}"
    if kind < 0.8:
        return f"ip -6 route del fd0{r.randrange(1, 4)}::/32"
    return None


def record(seed):
    r = random.Random(seed)
    sh("ip netns del r", check=False)
    sh("ip netns add r && ip link add lan0 netns r type veth peer name wire0")
    quiet = " ".join(f"net.ipv6.conf.{d}.accept_dad=0" for d in ("all", "default", "lan0"))
    sh(f"ip netns exec r sysctl -qw {quiet}")
    for c in ["ip link set lo up", "ip link set lan0 address 02:00:00:00:01:01", "ip link set lan0 up"]:
        sh("ip netns exec r " + c)
    sh("ip link set wire0 up")
    steps = []
    for _ in range(r.randrange(12, 40)):
        time.sleep(r.choice([0.004, 0.3, 1.0, 2.7, 5.015, 11.37, 30.2]) * r.choice([1, 1, 1, 3]))
        c = command(r)
        # A command is not to begin in one tick and to end in the next.
        while time.clock_gettime_ns(time.CLOCK_MONOTONIC) % 10_000_000 > 6_000_000:
            time.sleep(0.002)
        at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if c:
            done = sh("ip netns exec r " + c, check=False)
            steps.append({"at": at, "run": c, "err": done.stderr, "status": done.returncode})
        else:
            shown = SHOWN[r.randrange(len(SHOWN))]
            steps.append({"at": at, "run": shown, "out": sh("ip netns exec r " + shown).stdout})
    sh("ip link del wire0")
    return {"seed": seed, "steps": steps}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(out, "w") as f:
        for seed in range(first, first + count):
            f.write(json.dumps(record(seed)) + "\n")


main()
