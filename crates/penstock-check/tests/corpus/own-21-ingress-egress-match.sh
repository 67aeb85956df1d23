#!/bin/sh
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:10 htb rate 5mbit
tc class add dev ifb0 parent 1: classid 1:20 htb rate 20mbit
iptables -t mangle -A PREROUTING -i eth0 -p tcp --sport 443 -j MARK --set-mark 1
tc filter add dev ifb0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10
# expect: PS271 6
# expect: PS203 11
