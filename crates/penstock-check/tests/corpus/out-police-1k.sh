#!/bin/sh
# a bucket below one packet
# expect: PS234 9
DEV=ppp0
DOWNLINK=800
tc qdisc del dev $DEV ingress 2> /dev/null > /dev/null
tc qdisc add dev $DEV handle ffff: ingress
tc filter add dev $DEV parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 \
   police rate ${DOWNLINK}kbit burst 1k drop flowid :1
