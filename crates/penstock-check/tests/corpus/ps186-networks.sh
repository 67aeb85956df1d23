#!/bin/sh
# networks without their lengths
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 50mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 50mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 40mbit ceil 50mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 192.168.7.0 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dst 10.9.0.0/16 flowid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -d 172.16.4.0 -j CLASSIFY --set-class 1:10
# expect: PS186 8
# expect: PS186 10
