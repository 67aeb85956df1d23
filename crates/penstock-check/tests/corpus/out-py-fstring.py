#!/usr/bin/env python3
# Python: f-strings in a loop, the children have more than the parent
# expect: PS101 14
import os

IFACE = "eth0"
TOTAL = 100
SHARES = {"10": 60, "20": 30, "30": 30}

os.system(f"tc qdisc del dev {IFACE} root 2>/dev/null")
os.system(f"tc qdisc add dev {IFACE} root handle 1: htb default 30")
os.system(f"tc class add dev {IFACE} parent 1: classid 1:1 htb rate {TOTAL}mbit")
for minor, share in SHARES.items():
    os.system(f"tc class add dev {IFACE} parent 1:1 classid 1:{minor} htb rate {share}mbit ceil {TOTAL}mbit")
os.system(f"tc filter add dev {IFACE} parent 1: protocol ip prio 1 u32 match ip dst 10.1.0.0/16 flowid 1:10")
os.system(f"tc filter add dev {IFACE} parent 1: protocol ip prio 1 u32 match ip dst 10.2.0.0/16 flowid 1:20")
