#!/bin/bash
# The ifb of the redirection has two letters the other way round: the name is what is wrong, not that nobody makes it.
# expect: PS238 9
# expect: PS230 10
tc qdisc del dev eth0 ingress 2>/dev/null
ip link add ifb_down type ifb
ip link set dev ifb_down up
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb_donw
tc qdisc replace dev ifb_down root cake bandwidth 20mbit ingress nat
