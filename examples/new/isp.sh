#!/bin/bash
# The box's queues towards the subscribers: each is promised 2 Mbit/s and may have 10, of 100 in all.
set -e
dev=down
tc qdisc add dev $dev root handle 1: htb default 999
tc class add dev $dev parent 1:  classid 1:1   htb rate 100mbit
tc class add dev $dev parent 1:1 classid 1:999 htb rate 1mbit ceil 100mbit   # what belongs to nobody
for n in $(seq 1 50); do
    tc class  add dev $dev parent 1:1 classid 1:$((n + 100)) htb rate 2mbit ceil 10mbit
    tc qdisc  add dev $dev parent 1:$((n + 100)) fq_codel
    tc filter add dev $dev parent 1: protocol ip prio 1 u32 match ip dst 10.64.$n.0/24 flowid 1:$((n + 100))
done
