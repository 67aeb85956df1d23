#!/bin/bash
# expect: PS271 11
# download limits per client behind a bridge, no NAT
WAN=ens3
ip link add ifb0 type ifb 2>/dev/null
ip link set ifb0 up
ip addr add 203.0.113.1/24 dev ens4
tc qdisc del dev $WAN ingress 2>/dev/null
tc qdisc del dev ifb0 root 2>/dev/null
tc qdisc add dev $WAN handle ffff: ingress
tc filter add dev $WAN parent ffff: protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:1 htb rate 200mbit
tc class add dev ifb0 parent 1:1 classid 1:10 htb rate 120mbit ceil 200mbit
tc class add dev ifb0 parent 1:1 classid 1:20 htb rate 80mbit ceil 200mbit
tc filter add dev ifb0 parent 1: protocol ip prio 1 u32 match ip dst 203.0.113.0/24 flowid 1:10
