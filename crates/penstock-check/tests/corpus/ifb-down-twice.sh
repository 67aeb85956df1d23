#!/bin/bash
# expect: PS231 6
ip link add ifb0 type ifb
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0
tc filter add dev eth0 parent ffff: protocol ipv6 u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc replace dev ifb0 root fq_codel
