#!/usr/bin/env python3
# expect: PS107 16
import subprocess
from dataclasses import dataclass


@dataclass
class Tier:
    minor: int
    rate: int

TIERS = [Tier(10, 20), Tier(20, 50), Tier(30, 30)]

def run(cmd: str) -> None:
    subprocess.check_call(cmd.split())
run("tc qdisc replace dev eth0 root handle 1: htb default 30")
run("tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit")
for t in TIERS:
    run(f"tc class add dev eth0 parent 1:1 classid 1:{t.minor:x} htb rate {t.rate}mbit ceil 100mbit")
