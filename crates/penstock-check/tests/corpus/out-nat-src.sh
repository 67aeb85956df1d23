#!/bin/bash
# the inside host is looked for after masquerading
# expect: PS220 13
WAN=eth0
LAN=eth1
echo 1 > /proc/sys/net/ipv4/ip_forward
iptables -t nat -A POSTROUTING -o $WAN -j MASQUERADE
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: htb default 20
tc class add dev $WAN parent 1: classid 1:1 htb rate 9mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 4mbit ceil 9mbit
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 5mbit ceil 9mbit
tc filter add dev $WAN protocol ip parent 1: prio 1 u32 match ip src 192.168.1.50 flowid 1:10
