#!/bin/sh
WAN=eth0
LAN=eth1
sysctl -w net.ipv4.ip_forward=1
iptables -t nat -A POSTROUTING -o $WAN -j MASQUERADE
tc qdisc replace dev $WAN root cake bandwidth 19mbit diffserv4 dual-srchost docsis ack-filter nat
tc qdisc replace dev $LAN root cake bandwidth 190mbit diffserv4 dual-dsthost docsis
