#!/bin/bash
# an ifb that is down
# expect: PS231 7
ip link add ifb0 type ifb
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root fq_codel
