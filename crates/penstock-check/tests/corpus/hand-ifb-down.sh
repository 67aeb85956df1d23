#!/bin/bash
ip link add ifb0 type ifb
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:10 htb rate 20mbit
tc qdisc add dev ifb0 parent 1:10 fq_codel
# expect: PS231 5
