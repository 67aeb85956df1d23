#!/bin/sh
ip link add name ifb4wan type ifb
ip link set dev ifb4wan up
tc qdisc replace dev wan handle ffff: ingress
tc filter replace dev wan parent ffff: protocol all prio 10 matchall action mirred egress redirect dev ifb4wan
tc qdisc replace dev wan root cake bandwidth 20mbit nat dual-srchost ack-filter
tc qdisc replace dev ifb4wan root cake bandwidth 100mbit nat dual-dsthost ingress ack-filter
# expect: PS264 7
