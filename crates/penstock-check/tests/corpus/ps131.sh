#!/bin/bash
# real-time curves of more than the link
# expect: PS131 8
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: hfsc default 20
tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 5mbit ul m2 5mbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt m2 3mbit ls m2 1mbit
tc class add dev eth0 parent 1:1 classid 1:20 hfsc rt m2 3mbit ls m2 1mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:10
