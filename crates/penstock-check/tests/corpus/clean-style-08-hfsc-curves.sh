#!/bin/sh
# VoIP with a two-piece curve, the rest by link sharing.
DEV=ppp0
RATE=900
modprobe sch_hfsc
tc qdisc del dev $DEV root 2> /dev/null
tc qdisc add dev $DEV root handle 1: stab overhead 32 linklayer atm hfsc default 30
tc class add dev $DEV parent 1: classid 1:1 hfsc ls m2 ${RATE}kbit ul m2 ${RATE}kbit
tc class add dev $DEV parent 1:1 classid 1:10 hfsc rt umax 300b dmax 20ms rate 100kbit ls m2 100kbit
tc class add dev $DEV parent 1:1 classid 1:20 hfsc sc m1 $((RATE / 2))kbit d 30ms m2 $((RATE / 3))kbit
tc class add dev $DEV parent 1:1 classid 1:30 hfsc ls m2 $((RATE * 2 / 5))kbit
for leaf in 10 20 30; do
    tc qdisc add dev $DEV parent 1:$leaf handle $leaf: fq_codel target 15ms noecn
done
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff match ip dport 22 0xffff flowid 1:20
