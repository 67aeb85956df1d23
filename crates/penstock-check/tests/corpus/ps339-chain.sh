#!/bin/sh
# expect: PS339 7
tc qdisc replace dev eth0 root handle 1: prio
tc filter replace dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:1
iptables -t mangle -N marks
iptables -t mangle -A PREROUTING -j marks
iptables -t mangle -A marks -o eth0 -p tcp --dport 22 -j MARK --set-mark 1
iptables -t mangle -A marks -i eth1 -p udp --dport 53 -j MARK --set-mark 1
