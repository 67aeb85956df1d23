#!/bin/sh
# masquerading router; limit the kids
WAN=ppp0
iptables -t nat -A POSTROUTING -o $WAN -j MASQUERADE
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: htb default 10
tc class add dev $WAN parent 1: classid 1:1 htb rate 4mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 3mbit ceil 4mbit
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 1mbit
tc qdisc add dev $WAN parent 1:10 fq_codel
tc qdisc add dev $WAN parent 1:20 fq_codel
tc filter add dev $WAN parent 1: protocol ip prio 1 u32 match ip src 192.168.1.50/32 flowid 1:20
# expect: PS156 11
# expect: PS220 12
