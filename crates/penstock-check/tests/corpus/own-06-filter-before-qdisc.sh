#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:10
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
iptables -t mangle -A POSTROUTING -o eth0 -j MARK --set-mark 5
# expect: PS002 3
