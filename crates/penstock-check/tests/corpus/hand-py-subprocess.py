#!/usr/bin/env python3
import subprocess

DEV = "eth0"
CLASSES = [(10, "5mbit", "10mbit"), (20, "4mbit", "10mbit"), (30, "3mbit", "10mbit")]

def tc(*args, check=True):
    subprocess.run(["tc", *args], check=check)

tc("qdisc", "del", "dev", DEV, "root", check=False)
tc("qdisc", "add", "dev", DEV, "root", "handle", "1:", "htb", "default", "30")
tc("class", "add", "dev", DEV, "parent", "1:", "classid", "1:1", "htb", "rate", "10mbit")
for minor, rate, ceil in CLASSES:
    tc("class", "add", "dev", DEV, "parent", "1:1", "classid", f"1:{minor}", "htb", "rate", rate, "ceil", ceil)
    tc("qdisc", "add", "dev", DEV, "parent", f"1:{minor}", "fq_codel")
for i, net in enumerate(["10.1.0.0/16", "10.2.0.0/16"]):
    tc("filter", "add", "dev", DEV, "parent", "1:", "protocol", "ip", "prio", str(i + 1), "u32", "match", "ip", "dst", net, "flowid", f"1:{(i + 1) * 10}")
# expect: PS101 14
