#!/bin/bash
# An example to replace: calls first, everything else shares the rest.
DEV=eth0
RATE=9500 # kbit/s: a little below the line, so that the queue is here

tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 20
tc class add dev $DEV parent 1:  classid 1:1  htb rate ${RATE}kbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 500kbit ceil ${RATE}kbit prio 0
tc class add dev $DEV parent 1:1 classid 1:20 htb rate $((RATE - 500))kbit ceil ${RATE}kbit prio 1
tc qdisc add dev $DEV parent 1:10 pfifo limit 50
tc qdisc add dev $DEV parent 1:20 fq_codel
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10
