#!/usr/bin/env python3
import json, subprocess
cfg = json.load(open("rates.json"))
def tc(line):
    subprocess.run("tc " + line, shell=True, check=True)
tc("qdisc replace dev eth0 root handle 1: htb default 10")
tc(f"class add dev eth0 parent 1: classid 1:10 htb rate {cfg['rate']}mbit")
tc("qdisc add dev eth0 parent 1:10 fq_codel")
