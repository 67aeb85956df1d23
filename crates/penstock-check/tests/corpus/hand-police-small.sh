#!/bin/bash
RATE=100mbit
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 police rate $RATE burst 3k drop flowid :1
# expect: PS235 5
