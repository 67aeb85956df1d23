#!/bin/sh
# expect: PS003 9
# A port of six digits, which iptables takes for another.
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 8mbit
tc filter add dev eth0 parent 1: protocol ip handle 1 fw classid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 100000:100010 -j MARK --set-mark 1
