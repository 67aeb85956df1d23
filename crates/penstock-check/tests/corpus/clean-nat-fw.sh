#!/bin/bash
# marks by inside address before NAT, on an ATM line
WAN=ppp0
LAN=eth1
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: htb default 20
tc class add dev $WAN parent 1: classid 1:1 htb rate 4mbit overhead 26 linklayer atm
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 2mbit ceil 4mbit overhead 26 linklayer atm
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 2mbit ceil 4mbit overhead 26 linklayer atm
tc filter add dev $WAN parent 1: protocol ip prio 1 handle 1 fw flowid 1:10
iptables -t nat -A POSTROUTING -o $WAN -j MASQUERADE
iptables -t mangle -A FORWARD -i $LAN -s 192.168.1.10 -j MARK --set-mark 1
