#!/bin/bash
# a rule for a port
# expect: PS240 10
ip link add br0 type bridge
ip link set eth1 master br0
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:10
iptables -t mangle -A PREROUTING -i eth1 -p tcp -j MARK --set-mark 5
