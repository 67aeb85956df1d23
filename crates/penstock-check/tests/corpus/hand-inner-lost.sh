#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 99
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 60mbit ceil 100mbit
tc class add dev eth0 parent 1:10 classid 1:11 htb rate 30mbit ceil 60mbit
tc class add dev eth0 parent 1:10 classid 1:12 htb rate 30mbit ceil 60mbit
tc class add dev eth0 parent 1:1 classid 1:99 htb rate 40mbit ceil 100mbit
for c in 11 12 99; do tc qdisc add dev eth0 parent 1:$c handle $c: fq_codel; done
tc filter add dev eth0 parent 1:10 protocol ip prio 1 u32 match ip dst 10.20.1.0/24 flowid 1:11
tc filter add dev eth0 parent 1:10 protocol ip prio 1 u32 match ip dst 10.20.2.0/24 flowid 1:12
# expect: PS173 10
# expect: PS173 11
