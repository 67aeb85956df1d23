#!/bin/bash
# cake in the leaves
# expect: PS158 9
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 50mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 20mbit ceil 50mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 30mbit ceil 50mbit
tc qdisc add dev eth0 parent 1:10 cake besteffort bandwidth 20mbit
tc qdisc add dev eth0 parent 1:20 fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:10
