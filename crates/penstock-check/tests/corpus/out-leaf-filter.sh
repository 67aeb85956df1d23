#!/bin/bash
# filters on the leaf
# expect: PS172 13
# expect: PS172 14
tc qdisc del dev eth1 root 2>/dev/null
tc qdisc add dev eth1 root handle 1: htb default 13
tc class add dev eth1 parent 1: classid 1:1 htb rate 50mbit
tc class add dev eth1 parent 1:1 classid 1:13 htb rate 10mbit ceil 50mbit
tc class add dev eth1 parent 1:1 classid 1:14 htb rate 20mbit ceil 50mbit
tc class add dev eth1 parent 1:1 classid 1:15 htb rate 20mbit ceil 50mbit
iptables -t mangle -A FORWARD -s 10.0.0.1 -j MARK --set-mark 100
iptables -t mangle -A FORWARD -s 10.0.0.2 -j MARK --set-mark 101
tc filter add dev eth1 parent 1:13 protocol ip prio 1 handle 100 fw flowid 1:14
tc filter add dev eth1 parent 1:13 protocol ip prio 1 handle 101 fw flowid 1:15
