#!/bin/bash
DEV=veth12ab34f
tc qdisc add dev $DEV root handle 1: htb default 20
tc class add dev $DEV parent 1: classid 1:10 htb rate 5mbit
tc class add dev $DEV parent 1: classid 1:20 htb rate 5mbit
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip src 172.17.0.2 flowid 1:10
# expect: PS224 6
# expect: PS250 3
