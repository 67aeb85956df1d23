#!/bin/sh
iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
tc qdisc replace dev eth1 root handle 1: htb default 20
tc class add dev eth1 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth1 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev eth1 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
for ip in 10 11; do
tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip src 192.168.1.$ip flowid 1:10
done
# expect: PS224 8
