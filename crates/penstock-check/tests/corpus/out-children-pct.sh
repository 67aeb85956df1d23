#!/bin/bash
# shares that add up to more than all, computed with shell arithmetic
# expect: PS101 17
# give 60/30/20 percent
IF=eth0
TOTAL=20000
tc qdisc del dev $IF root 2>/dev/null
tc qdisc add dev $IF root handle 1: htb default 30
tc class add dev $IF parent 1: classid 1:1 htb rate ${TOTAL}kbit ceil ${TOTAL}kbit
add_class() {
    local id=$1 pct=$2
    tc class add dev $IF parent 1:1 classid 1:$id htb rate $((TOTAL * pct / 100))kbit ceil ${TOTAL}kbit prio $3
    tc qdisc add dev $IF parent 1:$id fq_codel
}
add_class 10 60 0
add_class 20 30 1
add_class 30 20 2
tc filter add dev $IF parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev $IF parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff match ip dport 443 0xffff flowid 1:20
