#!/bin/bash
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 ingress handle ffff:
tc class add dev eth0 parent ffff: classid ffff:1 htb rate 5mbit
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip src 0.0.0.0/0 flowid ffff:1
# expect: PS002 4
