#!/bin/bash
# an ifb from nowhere
# expect: PS241 4
ip link set ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb0
tc qdisc replace dev ifb0 root fq_codel
