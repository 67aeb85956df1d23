#!/bin/bash
# expect: PS221 6
iptables -t nat -A PREROUTING -i eth0 -d 203.0.113.5 -p tcp --dport 80 -j DNAT --to-destination 192.168.1.80
ip addr add 192.168.1.1/24 dev eth1; ip link set eth1 up
tc qdisc replace dev eth1 root handle 1: prio
tc filter replace dev eth1 parent 1: protocol ip prio 1 u32 match ip dst 203.0.113.5/32 flowid 1:1
tc filter replace dev eth1 parent 1: protocol ip prio 2 u32 match ip dst 192.168.1.80/32 flowid 1:2
