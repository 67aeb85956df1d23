#!/bin/bash
# Two ifbs, one of them used under another name than it is made under.
# expect: PS241 9
tc qdisc replace dev eth1 root fq_codel
ip link add ifb-wan type ifb
ip link set ifb-wan up
tc qdisc replace dev eth1 handle ffff: ingress
tc filter replace dev eth1 parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb-wan
ip link add ifbwan type ifb
tc qdisc replace dev eth0 handle ffff: ingress
tc filter replace dev eth0 parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb_wan
tc qdisc replace dev ifb_wan root cake bandwidth 20mbit ingress nat
tc qdisc replace dev ifb-wan root cake bandwidth 20mbit ingress nat
