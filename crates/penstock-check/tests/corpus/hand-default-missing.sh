#!/bin/bash
function shape() {
    local dev=$1 rate=$2
    tc qdisc del dev $dev root 2>/dev/null
    tc qdisc add dev $dev root handle 1: htb default 40
    tc class add dev $dev parent 1: classid 1:1 htb rate ${rate}mbit
    tc class add dev $dev parent 1:1 classid 1:10 htb rate $((rate/2))mbit ceil ${rate}mbit prio 0
    tc class add dev $dev parent 1:1 classid 1:20 htb rate $((rate/2))mbit ceil ${rate}mbit prio 1
    tc qdisc add dev $dev parent 1:10 fq_codel
    tc qdisc add dev $dev parent 1:20 fq_codel
    tc filter add dev $dev parent 1: protocol ip prio 1 u32 match ip dst 192.168.1.0/24 flowid 1:10
    tc filter add dev $dev parent 1: protocol ip prio 2 u32 match ip dst 192.168.2.0/24 flowid 1:20
}
shape eth0 10
# expect: PS107 5
