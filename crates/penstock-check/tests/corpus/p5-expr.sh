#!/bin/sh
# expect: PS102 9
# penstock-check: PS102
UP=1000
RATE=$(expr $UP \* 85 / 100)
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:1 htb rate ${RATE}kbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 100kbit ceil 900kbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 100kbit ceil 840kbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.1/32 flowid 1:20
