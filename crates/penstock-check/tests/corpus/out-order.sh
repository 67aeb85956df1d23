#!/bin/bash
# the catch-all has the lower number
# expect: PS180 9
# expect: PS180 10
DEV=eth0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: prio bands 3
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dst 0.0.0.0/0 flowid 1:3
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:1
tc filter add dev $DEV parent 1: protocol ip prio 3 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:1
