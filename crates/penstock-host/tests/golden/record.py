#!/usr/bin/env python3
"""Runs the scenes of a file against the real programs and writes what they gave.

    record.py iptables.txt > iptables-1.8.9.txt

Wants root on a machine that is thrown away afterwards. A scene is a run of command lines without an empty line; before
each the tables are emptied. Of every command is written: `$ ` and the line, `= ` and the exit status, `! ` and the
first line of standard error where there is any, and standard output, two blanks before each line. Files read by
commands are beside this script.
"""

import re
import subprocess
import sys

RESET = {
    "iptables": "for t in mangle filter; do iptables -t $t -F; iptables -t $t -X; iptables -t $t -Z; done;"
    "for c in INPUT FORWARD OUTPUT; do iptables -P $c ACCEPT; done",
    # The other ends are in a name space of their own, where nothing answers.
    "ip": "pkill -x sleep; ip link set lo down; ip link del eth0; ip link del eth1;"
    "unshare -n sleep 99999 >/dev/null 2>&1 & sleep 1; for n in 0 1; do"
    "  ip link add eth$n index $((n + 2)) type veth peer name p$n netns $!;"
    "  nsenter -n -t $! ip link set p$n up; tc qdisc replace dev eth$n root pfifo_fast; done",
    "sysctl": "sysctl -q -w net.ipv4.ip_default_ttl=64 net.ipv4.ip_forward=0 net.ipv4.tcp_sack=1;"
    "ip link add eth0 type dummy",
}


def plain(text):
    """Without what differs from machine to machine: hardware addresses (except those given), a veth's other end,
    IPv6."""
    text = re.sub(r"(link/ether|link/loopback) [0-9a-f:]+ brd", r"\1 MAC brd", text)
    text = re.sub(r"(?m)^(eth\d+)(\S*)( +\S+ +)[0-9a-f:]{17} <", r"\1\2\3MAC <", text)
    text = re.sub(r"(eth\d)@if\d+", r"\1", text)
    text = re.sub(r" link-netnsid \d+", "", text)
    return "".join(line for line in text.splitlines(True) if "inet6" not in line)


def main():
    path = sys.argv[1]
    scene_reset = RESET[path.split("/")[-1].split(".")[0]]
    fresh = True
    print(f"# Recorded by record.py from {path.split('/')[-1]}; see there for the form.")
    for line in open(path).read().splitlines():
        if line.startswith("#"):
            continue
        if not line:
            fresh = True
            continue
        if fresh:
            subprocess.run(["sh", "-c", scene_reset], capture_output=True)
            print("\n", end="")
            fresh = False
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
        print(f"$ {line}\n= {done.returncode}")
        if done.stderr:
            print("! " + plain(done.stderr).splitlines()[0])
        for out in plain(done.stdout).splitlines():
            print("  " + out)


main()
