#!/bin/bash
# fw on an ifb
# expect: PS203 13
modprobe ifb
ip link set ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc replace dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev ifb0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev ifb0 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc filter add dev ifb0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:10
iptables -t mangle -A PREROUTING -i eth0 -p tcp --sport 80 -j MARK --set-mark 5
# expect: PS271 8
