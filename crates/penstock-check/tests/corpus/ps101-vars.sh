#!/bin/bash
# shares of more than a hundred percent
# expect: PS101 9
UP=2000
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 12
tc class add dev eth0 parent 1: classid 1:1 htb rate ${UP}kbit
tc class add dev eth0 parent 1:1 classid 1:11 htb rate $((UP*70/100))kbit ceil ${UP}kbit
tc class add dev eth0 parent 1:1 classid 1:12 htb rate $((UP*40/100))kbit ceil ${UP}kbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:11
