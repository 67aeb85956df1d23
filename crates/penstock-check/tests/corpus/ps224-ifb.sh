#!/bin/bash
IF=ppp0
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev $IF handle ffff: ingress
tc filter add dev $IF parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev ifb0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev ifb0 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc filter add dev ifb0 parent 1: protocol ip prio 1 u32 match ip src 192.168.1.50 flowid 1:10
# expect: PS224 11
# expect: PS250 5
