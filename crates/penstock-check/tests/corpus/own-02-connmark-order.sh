#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 5060 -j MARK --set-mark 5
iptables -t mangle -A POSTROUTING -o eth0 -j CONNMARK --restore-mark
# expect: PS212 8
# expect: PS216 8
