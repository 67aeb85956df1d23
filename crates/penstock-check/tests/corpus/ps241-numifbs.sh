#!/bin/sh
modprobe ifb numifbs=1
ip link set dev ifb0 up
ip link set dev ifb1 up
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb1
tc qdisc add dev ifb1 root handle 1: htb default 10
tc class add dev ifb1 parent 1: classid 1:10 htb rate 10mbit
# expect: PS241 4
# expect: PS250 5
# expect: PS250 7
