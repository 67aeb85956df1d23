#!/bin/bash
# the marks of PREROUTING are awaited on the ifb
# expect: PS203 16
WAN=eth0
ip link add ifb0 type ifb 2>/dev/null
ip link set ifb0 up
tc qdisc del dev $WAN ingress 2>/dev/null
tc qdisc del dev ifb0 root 2>/dev/null
tc qdisc add dev $WAN handle ffff: ingress
tc filter add dev $WAN parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:1 htb rate 30mbit
tc class add dev ifb0 parent 1:1 classid 1:10 htb rate 10mbit ceil 30mbit prio 0
tc class add dev ifb0 parent 1:1 classid 1:20 htb rate 20mbit ceil 30mbit prio 1
iptables -t mangle -A PREROUTING -i $WAN -p tcp --sport 443 -j MARK --set-mark 10
tc filter add dev ifb0 parent 1: protocol ip prio 1 handle 10 fw flowid 1:10
# expect: PS271 10
