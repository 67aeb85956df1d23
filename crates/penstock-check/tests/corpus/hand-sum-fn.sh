#!/bin/bash
# class <id> <parent> <rate> <ceil>
class() { tc class add dev "$DEV" parent 1:$2 classid 1:$1 htb rate ${3}kbit ceil ${4}kbit; }
leaf()  { class "$@" && tc qdisc add dev "$DEV" parent 1:$1 fq_codel; }
DEV=eth3
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 13
class 1 "" 10000 10000
leaf 11 1 4000 10000
leaf 12 1 4000 10000
leaf 13 1 4000 10000
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dst 10.0.1.0/24 flowid 1:11
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip dst 10.0.2.0/24 flowid 1:12
# expect: PS101 11
