#!/bin/bash
# the filter waits for 12, the rules set 11
# expect: PS200 12
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 13
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev eth0 parent 1:1 classid 1:11 htb rate 50mbit ceil 100mbit
tc class add dev eth0 parent 1:1 classid 1:12 htb rate 30mbit ceil 100mbit
tc class add dev eth0 parent 1:1 classid 1:13 htb rate 20mbit ceil 100mbit
iptables -t mangle -A POSTROUTING -p tcp --sport 80 -j MARK --set-mark 11
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 11 fw flowid 1:11
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 12 fw flowid 1:12
