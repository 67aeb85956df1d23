#!/bin/bash
# a port in a loop, without a protocol
# expect: PS190 9
DEV=eth0
PORTS="25 110 143"
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: prio
for p in $PORTS; do
  tc filter add dev $DEV parent 1: protocol ip prio 10 u32 match ip dport $p 0xffff flowid 1:3
done
