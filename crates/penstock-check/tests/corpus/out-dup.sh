#!/bin/bash
# the same filter in a second pass
# expect: PS181 11
DEV=eth0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 20
tc class add dev $DEV parent 1: classid 1:1 htb rate 30mbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 10mbit ceil 30mbit
tc class add dev $DEV parent 1:1 classid 1:20 htb rate 20mbit ceil 30mbit
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 3478 0xffff flowid 1:10
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 3478 0xffff flowid 1:10
