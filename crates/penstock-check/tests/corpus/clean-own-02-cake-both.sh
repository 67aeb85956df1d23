#!/bin/sh
ip link add name ifb4wan type ifb
ip link set ifb4wan up
tc qdisc replace dev wan root cake bandwidth 18mbit docsis ack-filter nat dual-srchost
tc qdisc replace dev wan ingress
tc filter replace dev wan parent ffff: protocol all prio 10 matchall action mirred egress redirect dev ifb4wan
tc qdisc replace dev ifb4wan root cake bandwidth 90mbit docsis ingress nat dual-dsthost
