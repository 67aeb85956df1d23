#!/bin/sh
DEV=wan0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: hfsc default 3
tc class add dev $DEV parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit
tc class add dev $DEV parent 1:1 classid 1:2 hfsc rt m1 2mbit d 10ms m2 500kbit ls m2 1mbit
tc class add dev $DEV parent 1:1 classid 1:3 hfsc ls m2 6mbit
tc class add dev $DEV parent 1:1 classid 1:4 hfsc ls m2 3mbit
tc qdisc add dev $DEV parent 1:2 pfifo limit 100
tc qdisc add dev $DEV parent 1:3 fq_codel
tc qdisc add dev $DEV parent 1:4 fq_codel
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 5004 0xfffe flowid 1:2
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff match ip dport 25 0xffff flowid 1:4
