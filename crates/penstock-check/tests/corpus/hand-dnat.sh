#!/bin/bash
# server behind port forwarding
WAN=eth0; LAN=eth1
iptables -t nat -A PREROUTING -i $WAN -p tcp --dport 8080 -j DNAT --to-destination 192.168.1.80:80
iptables -t nat -A POSTROUTING -o $WAN -j MASQUERADE
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: htb default 10
tc class add dev $WAN parent 1: classid 1:1 htb rate 20mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 10mbit ceil 20mbit
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 10mbit ceil 20mbit
tc qdisc add dev $WAN parent 1:10 fq_codel
tc qdisc add dev $WAN parent 1:20 fq_codel
tc filter add dev $WAN parent 1: protocol ip prio 1 flower src_ip 192.168.1.80 classid 1:20
# expect: PS220 13
