#!/bin/bash
# expect: PS179 9
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 20mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 20mbit prio 2
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match ip dport 22 0xffff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 handle 5 fw classid 1:0
iptables -t mangle -A POSTROUTING -p udp -j MARK --set-mark 5
