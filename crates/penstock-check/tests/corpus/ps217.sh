#!/bin/sh
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 6 fw flowid 1:10
iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark
iptables -t mangle -A PREROUTING -j CONNMARK --save-mark
iptables -t mangle -A FORWARD -o eth0 -p tcp --dport 22 -j MARK --set-mark 6
# expect: PS217 8
