#!/bin/sh
# expect: PS204 3
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 443 -j MARK --set-mark 4
tc qdisc replace dev eth1 root handle 1: htb default 1
tc class add dev eth1 parent 1: classid 1:1 htb rate 50mbit
tc class add dev eth1 parent 1: classid 1:4 htb rate 5mbit
tc filter add dev eth1 parent 1: protocol ip handle 4 fw flowid 1:4
