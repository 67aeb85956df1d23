#!/bin/bash
# expect: PS002 8
D=eth0
tc qdisc replace dev $D root handle 1: htb default 10
tc class add dev $D parent 1: classid 1:10 htb rate 10mbit
tc class add dev $D parent 1: classid 1:20 htb rate 10mbit
tc filter add dev $D parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.2/32 flowid 1:20
tc class del dev $D classid 1:20
tc filter del dev $D parent 1: protocol ip prio 1
tc class del dev $D classid 1:20
