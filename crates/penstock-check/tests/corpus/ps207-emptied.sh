#!/bin/bash
# penstock-check: PS207 a mark in nat; in mangle a later command would take it away, so the fix is not safe.
# expect: PS207 10
# expect: PS220 16
tc qdisc replace dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 6 fw flowid 1:10
iptables -t nat -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 6
# The WAN card.
iptables -t mangle -F
iptables -t nat -A POSTROUTING -o eth1 -j MASQUERADE
tc qdisc replace dev eth1 root handle 1: htb default 11
tc class add dev eth1 parent 1: classid 1:11 htb rate 2mbit; tc class add dev eth1 parent 1: classid 1:12 htb rate 9mbit
tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip src 192.168.1.11 flowid 1:12
