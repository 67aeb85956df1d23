#!/bin/bash
# a VPS that limits its own uploads by user
IF=ens3
iptables -t mangle -A OUTPUT -o $IF -m owner --uid-owner 1001 -j MARK --set-mark 7
tc qdisc del dev $IF root 2>/dev/null
tc qdisc add dev $IF root handle 1: htb default 10
tc class add dev $IF parent 1: classid 1:1 htb rate 200mbit
tc class add dev $IF parent 1:1 classid 1:10 htb rate 190mbit ceil 200mbit quantum 30000
tc class add dev $IF parent 1:1 classid 1:70 htb rate 10mbit ceil 20mbit
tc filter add dev $IF parent 1: protocol ip prio 1 handle 7 fw flowid 1:70
tc filter add dev $IF parent 1: protocol ipv6 prio 2 handle 7 fw flowid 1:70
