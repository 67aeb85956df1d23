#!/bin/bash
# a class on ingress
# expect: PS002 6
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 ingress
tc class add dev eth0 parent ffff: classid ffff:1 htb rate 1mbit
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 police rate 10mbit burst 60k drop
