#!/usr/bin/env python3
# expect: PS001 6
import json, subprocess
cfg = json.load(open("rates.json"))
subprocess.run(["tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "htb", "default", "10"])
subprocess.run(f"tc class add dev eth0 parent 1: classid 1:10 htb rat {cfg['rate']}mbit", shell=True)
