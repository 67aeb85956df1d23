#!/bin/sh
# expect: PS003 7
# expect: PS003 8
# expect: PS200 14
WAN=eth0
iptables -t mangle -N SHAPE 2>/dev/null || iptables -t mangle -F SHAPE
iptables -t mangle -A SHAPE -o $WAN --dport 22 -j MARK --set-mark 1
iptables -t mangle -A POSTROUTNG -o $WAN -j SHAPE
iptables -t mangle -A POSTROUTING -o $WAN -p tcp --dport 443 -j MARK --set-mark 2
tc qdisc replace dev $WAN root handle 1: htb default 2
tc class add dev $WAN parent 1: classid 1:1 htb rate 9mbit
tc class add dev $WAN parent 1:1 classid 1:2 htb rate 9mbit
tc filter add dev $WAN parent 1: protocol all prio 1 handle 2 fw flowid 1:2
tc filter add dev $WAN parent 1: protocol all prio 2 handle 3 fw flowid 1:1

# expect: PS171 14
