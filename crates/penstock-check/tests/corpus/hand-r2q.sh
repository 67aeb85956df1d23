#!/bin/bash
# gigabit with the default r2q
DEV=eth2
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 20
tc class add dev $DEV parent 1: classid 1:1 htb rate 1gbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 400mbit ceil 1gbit
tc class add dev $DEV parent 1:1 classid 1:20 htb rate 600mbit ceil 1gbit
tc qdisc add dev $DEV parent 1:10 fq_codel
tc qdisc add dev $DEV parent 1:20 fq_codel
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dst 172.16.0.0/12 classid 1:10
# expect: PS110 7
# expect: PS110 8
