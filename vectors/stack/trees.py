#!/usr/bin/env python3
"""Records what random networks of bridges in a Linux make of themselves by their spanning trees: `trees.jsonl`.

Run inside a user-mode Linux whose clock is exact, as root: trees.py FIRST COUNT OUT. A case is one machine with several bridges, joined by veth pairs, some of them in
rings; commands come at instants in the midst of a tick, and what the bridges know is read in between. `hz`: ticks a second; time 0 is a whole second
of the kernel's own count of ticks, and a whole number of the coarsest steps of its timers. `told` has for each step the ticks at which its commands began and their exit status, the tick of the look, and what was seen.
"""
import json
import os
import random
import subprocess
import sys
import time

BRIDGE = ["bridge_id", "root_id", "root_port", "root_path_cost", "topology_change", "topology_change_detected", "hello_timer",
          "tcn_timer", "topology_change_timer", "stp_state", "forward_delay", "hello_time", "max_age"]
PORT = ["state", "port_id", "path_cost", "designated_root", "designated_bridge", "designated_port", "designated_cost", "change_ack",
        "config_pending", "message_age_timer", "forward_delay_timer", "hold_timer"]


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.returncode


def jiffies():
    for line in open("/proc/timer_list"):
        if line.startswith("jiffies:"):
            return int(line.split()[1])
    raise SystemExit("no count of ticks in /proc/timer_list")


def read(path):
    try:
        return open(path).read().strip()
    except OSError:
        return None


def hertz():
    first, begin = jiffies(), time.monotonic()
    time.sleep(1)
    return round((jiffies() - first) / (time.monotonic() - begin) / 50) * 50


def case(seed, hz):
    r = random.Random(f"trees {seed}")
    bridges = [f"br{i}" for i in range(r.randint(1, 5))]
    links = []
    for i in range(1, len(bridges)):
        links.append((r.randrange(i), i))
    # In a ring a bridge without a spanning tree would send frames round for ever.
    rings = r.choice([0, 0, 1, 2, 3])
    for _ in range(rings):
        links.append((r.randrange(len(bridges)), r.randrange(len(bridges))))
    ends = [(f"p{n}{side}", bridges[at]) for n, link in enumerate(links) for side, at in zip("ab", link)]
    macs = r.sample(range(1, 250), len(ends))
    first = ["sysctl -qw net.ipv6.conf.default.disable_ipv6=1", "sysctl -qw net.ipv6.conf.all.disable_ipv6=1"]
    early = rings > 0 or r.random() < 0.4

    def tuned(name):
        words = []
        if r.random() < 0.4:
            words.append(f"priority {r.choice([0, 4096, 28672, 32768, 32769, 61440])}")
        if r.random() < 0.25:
            words.append(f"forward_delay {r.choice([200, 400, 1500, 2100, 3000])}")
        if r.random() < 0.25:
            words.append(f"hello_time {r.choice([100, 150, 200, 1000])}")
        if r.random() < 0.2:
            words.append(f"max_age {r.choice([600, 1000, 2000, 4000])}")
        return " ".join(words)

    for name in bridges:
        stp = " stp_state 1" if early and (rings or r.random() < 0.9) else ""
        first.append(f"ip link add {name} type bridge{stp} {tuned(name)}".strip())
    for n, (a, b) in enumerate(links):
        first.append(f"ip link add p{n}a address 02:00:00:00:00:{macs[2 * n]:02x} type veth"
                     f" peer name p{n}b address 02:00:00:00:00:{macs[2 * n + 1]:02x}")
    todo = [f"ip link set {end} master {bridge}" for end, bridge in ends]
    todo += [f"ip link set {end} up" for end, _ in ends]
    todo += [f"ip link set {name} up" for name in bridges]
    if r.random() < 0.5:
        r.shuffle(todo)
    todo += [f"ip link set {end} type bridge_slave {r.choice(['cost', 'priority'])} {r.choice([1, 5, 20, 40])}"
             for end, _ in ends if r.random() < 0.2]
    if not early:
        todo += [f"ip link set {name} type bridge stp_state 1" for name in bridges if r.random() < 0.9]
    first += todo

    def amid():
        name, (end, bridge) = r.choice(bridges), r.choice(ends) if ends else ("none", bridges[0])
        return r.choice([
            f"ip link set {end} down", f"ip link set {end} up", f"ip link set {end} down", f"ip link set {end} up",
            f"ip link set {name} down", f"ip link set {name} up",
            f"ip link set {name} type bridge priority {r.choice([0, 4096, 32768, 40960])}",
            f"ip link set {name} type bridge stp_state {1 if rings else r.choice([0, 1])}",
            f"ip link set {name} type bridge {r.choice(['forward_delay', 'hello_time', 'max_age'])} {r.choice([100, 400, 900, 2000, 3500])}",
            f"ip link set {end} type bridge_slave cost {r.choice([1, 7, 100, 65535, 0])}",
            f"ip link set {end} type bridge_slave priority {r.choice([0, 1, 63, 64])}",
            f"ip link set {end} type bridge_slave {r.choice(['guard', 'root_block'])} {r.choice(['on', 'off'])}",
            f"ip link set {end} type bridge_slave state {r.choice([0, 1, 2, 3, 4])}",
            f"ip link set {end} nomaster", f"ip link set {end} master {bridge}",
        ])

    steps = [[0.0, first]]
    at = 0.0
    for _ in range(r.randint(6, 14)):
        at += r.choice([0.3, 1.1, 2.0, 4.7, 11.0, 16.0, 31.0]) * r.uniform(0.5, 1.2)
        commands = [amid() for _ in range(r.choice([0, 0, 0, 1, 1, 2]))]
        steps.append([at, commands])
    steps = [[int(t * hz), c] for t, c in steps]
    return {"seed": seed, "hz": hz, "bridges": bridges, "ports": [end for end, _ in ends], "steps": steps}


def snapshot(c):
    seen = {}
    for name in c["bridges"]:
        seen[name] = [read(f"/sys/class/net/{name}/bridge/{f}") for f in BRIDGE]
        seen[name].append(read(f"/sys/class/net/{name}/carrier"))
    for name in c["ports"]:
        seen[name] = [read(f"/sys/class/net/{name}/brport/{f}") for f in PORT]
        seen[name].append(read(f"/sys/class/net/{name}/statistics/tx_packets"))
    return seen


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    run("modprobe bridge")
    hz = hertz()
    with open(out, "w") as file:
        for seed in range(first, first + count):
            c = case(seed, hz)
            # Time 0: a whole second of ticks, and of the steps of the wheel of timers.
            now, whole = jiffies(), hz * 512
            time.sleep((whole - now % whole) / hz - 0.6 / hz)
            while jiffies() % whole:
                time.sleep(0.1 / hz)
            zero = time.monotonic()

            def midst(of):
                """Waits for the midst of that tick, or of the next one; answers which it was."""
                tick = max(of, int((time.monotonic() - zero) * hz + 0.5))
                time.sleep(max(0, (tick + 0.5) / hz - (time.monotonic() - zero)))
                return tick

            told = []
            for at, commands in c["steps"]:
                answers = []
                for command in commands:
                    answers.append([midst(at), run(command)])
                told.append([answers, midst(at), snapshot(c)])
            for name in c["bridges"]:
                run(f"ip link del {name}")
            for name in c["ports"][::2]:
                run(f"ip link del {name}")
            file.write(json.dumps({**c, "told": told}) + "\n")
            file.flush()
            print(seed, round(time.monotonic() - zero, 4), file=sys.stderr)


if __name__ == "__main__":
    main()
