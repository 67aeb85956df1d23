#!/bin/sh
DEV=eth0
tc qdisc replace dev $DEV root handle 1: prio
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:3
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip tos 0x20 0xfc flowid 1:3
# expect: PS118 4
