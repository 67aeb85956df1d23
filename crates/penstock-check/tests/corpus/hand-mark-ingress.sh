#!/bin/bash
modprobe ifb numifbs=1
ip link set dev ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc del dev ifb0 root 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 2: htb default 30
tc class add dev ifb0 parent 2: classid 2:1 htb rate 20mbit
tc class add dev ifb0 parent 2:1 classid 2:10 htb rate 10mbit ceil 20mbit
tc class add dev ifb0 parent 2:1 classid 2:30 htb rate 10mbit ceil 20mbit
tc qdisc add dev ifb0 parent 2:10 fq_codel
tc qdisc add dev ifb0 parent 2:30 fq_codel
iptables -t mangle -A PREROUTING -i eth0 -p udp --sport 5060 -j MARK --set-mark 10
tc filter add dev ifb0 parent 2: protocol ip prio 1 handle 10 fw flowid 2:10
# expect: PS203 15
# expect: PS271 7
