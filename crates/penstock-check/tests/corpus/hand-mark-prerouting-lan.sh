#!/bin/bash
# upload marks set for packets that come from outside
WAN=eth0; LAN=eth1
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: htb default 30
tc class add dev $WAN parent 1: classid 1:1 htb rate 10mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev $WAN parent 1:1 classid 1:30 htb rate 5mbit ceil 10mbit
tc qdisc add dev $WAN parent 1:10 fq_codel
tc qdisc add dev $WAN parent 1:30 fq_codel
tc filter add dev $WAN parent 1: protocol ip prio 1 handle 6 fw flowid 1:10
iptables -t mangle -A PREROUTING -i $WAN -p tcp --dport 22 -j MARK --set-mark 6
iptables -A FORWARD -i $LAN -o $WAN -j ACCEPT
# expect: PS204 12
