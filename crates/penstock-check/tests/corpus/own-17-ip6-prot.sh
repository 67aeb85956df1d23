#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip6 dst 2001:db8::/32 flowid 1:10
# expect: PS192 6
