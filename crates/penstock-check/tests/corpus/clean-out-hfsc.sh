#!/bin/bash
# VoIP by HFSC
D=eth0
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1: hfsc default 12
tc class add dev $D parent 1: classid 1:1 hfsc ls rate 9mbit ul rate 9mbit
tc class add dev $D parent 1:1 classid 1:11 hfsc rt m1 2mbit d 20ms m2 500kbit ls rate 2mbit
tc class add dev $D parent 1:1 classid 1:12 hfsc ls rate 7mbit
tc qdisc add dev $D parent 1:11 handle 11: pfifo limit 50
tc qdisc add dev $D parent 1:12 handle 12: fq_codel
tc filter add dev $D parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:11
