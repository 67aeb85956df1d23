#!/bin/bash
# inside addresses before NAT
# expect: PS221 13
modprobe ifb
ip link set ifb0 up
iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc replace dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:10 htb rate 5mbit
tc class add dev ifb0 parent 1: classid 1:20 htb rate 5mbit
tc filter add dev ifb0 parent 1: protocol ip prio 1 u32 match ip dst 192.168.1.10 flowid 1:10
# expect: PS271 9
