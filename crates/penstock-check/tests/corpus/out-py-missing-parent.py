#!/usr/bin/env python3
# Python: a list of commands, the parent is never made
# expect: PS109 9
import subprocess

commands = [
    "tc qdisc del dev eth0 root",
    "tc qdisc add dev eth0 root handle 1: htb default 12",
    "tc class add dev eth0 parent 1:1 classid 1:12 htb rate 5mbit ceil 5mbit",
    "tc qdisc add dev eth0 parent 1:12 handle 120: fq_codel",
]
for command in commands:
    subprocess.run(command.split())
