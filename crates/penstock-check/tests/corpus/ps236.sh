#!/bin/bash
# a policer that lets everything through
# expect: PS236 6
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 police rate 1mbit burst 20k pass flowid :1
