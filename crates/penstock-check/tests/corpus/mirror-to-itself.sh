#!/bin/sh
# expect: PS311 7
MON=eth0
DEV=eth0
tc qdisc del dev $DEV ingress 2>/dev/null
tc qdisc add dev $DEV handle ffff: ingress
tc filter add dev $DEV parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress mirror dev $MON
