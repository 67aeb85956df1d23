#!/bin/sh
# limit downloads of one PC ... on the outside device
WAN=eth0
LAN=eth1
iptables -t nat -A POSTROUTING -o $WAN -j MASQUERADE
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: htb default 10
tc class add dev $WAN parent 1: classid 1:1 htb rate 40mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 30mbit ceil 40mbit
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 10mbit
tc qdisc add dev $WAN parent 1:10 fq_codel
tc qdisc add dev $WAN parent 1:20 fq_codel
tc filter add dev $WAN parent 1: protocol ip prio 1 u32 match ip dst 192.168.1.50/32 flowid 1:20
# expect: PS222 13
