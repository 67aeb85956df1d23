#!/bin/bash
# A home line of 20 Mbit/s: calls first, then interactive work, then everything else. Two mistakes are in it.
DEV=eth0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 30
tc class add dev $DEV parent 1:  classid 1:1  htb rate 19mbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 2mbit  ceil 19mbit prio 0
tc class add dev $DEV parent 1:1 classid 1:20 htb rate 5mbit  ceil 19mbit prio 1
tc class add dev $DEV parent 1:1 classid 1:30 htb rate 12mbit ceil 19mbit prio 2
tc qdisc add dev $DEV parent 1:10 pfifo limit 50
tc qdisc add dev $DEV parent 1:20 fq_codel
tc qdisc add dev $DEV parent 1:30 fq_codel lmit 300

# Calls are marked EF by the phone; SSH and pings are interactive.
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip dport 22 0xffff flowid 1:20
tc filter add dev $DEV parent 1: protocol ip prio 3 u32 match ip protocol 1 0xff flowid 1:21
