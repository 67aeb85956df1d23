#!/bin/sh
ip link add ifb0 type ifb
ip link set ifb0 up
ip6tables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j CLASSIFY --set-class 1:10
tc qdisc replace dev eth0 ingress
tc filter replace dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc replace dev ifb0 root fq_codel
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
# expect: PS271 6
