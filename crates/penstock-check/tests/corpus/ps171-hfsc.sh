#!/bin/bash
# expect: PS171 8
DEV=eth0
tc qdisc replace dev $DEV root handle 1: hfsc default 30
tc class add dev $DEV parent 1: classid 1:1 hfsc sc rate 20mbit ul rate 20mbit
tc class add dev $DEV parent 1:1 classid 1:10 hfsc sc umax 1500b dmax 20ms rate 4mbit ul rate 20mbit
tc class add dev $DEV parent 1:1 classid 1:30 hfsc sc rate 8mbit ul rate 20mbit
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff match ip dport 443 0xffff flowid 1:1
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
