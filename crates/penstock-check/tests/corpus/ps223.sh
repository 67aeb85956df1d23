#!/bin/bash
WAN=eth0
ip addr add 192.0.2.10/24 dev $WAN
ip addr add 10.8.0.1/24 dev tun0
ip route add 10.20.0.0/16 via 10.8.0.2 dev tun0
tc qdisc replace dev $WAN root handle 1: htb default 20
tc class add dev $WAN parent 1: classid 1:1 htb rate 10mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc filter add dev $WAN parent 1: protocol ip prio 1 u32 match ip dst 10.20.0.0/16 flowid 1:10
tc filter add dev $WAN parent 1: protocol ip prio 2 flower dst_ip 192.0.2.10 classid 1:10
tc filter add dev $WAN parent 1: protocol ip prio 3 u32 match ip src 192.0.2.10 flowid 1:10
# expect: PS223 10
# expect: PS223 11
