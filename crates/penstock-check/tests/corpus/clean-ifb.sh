#!/bin/bash
# download shaped on an ifb
modprobe ifb numifbs=1
ip link set dev ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc del dev ifb0 root 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:1 htb rate 16mbit
tc class add dev ifb0 parent 1:1 classid 1:10 htb rate 16mbit
tc qdisc add dev ifb0 parent 1:10 handle 10: fq_codel
