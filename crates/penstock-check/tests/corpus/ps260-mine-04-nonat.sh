#!/bin/sh
# cake both ways on a cable line behind NAT
EXT=${EXT:-eth1}
tc qdisc replace dev $EXT root cake bandwidth 18mbit diffserv4 dual-srchost docsis ack-filter
ip link add ifb-wan type ifb 2>/dev/null || true
ip link set ifb-wan up
tc qdisc replace dev ifb-wan root cake bandwidth 210mbit besteffort dual-dsthost nat ingress docsis
tc qdisc replace dev $EXT handle ffff: ingress
tc filter replace dev $EXT parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb-wan
# expect: PS260 4
