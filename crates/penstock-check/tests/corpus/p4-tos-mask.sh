#!/bin/sh
# expect: PS194 5
DEV=eth0
tc qdisc replace dev $DEV root handle 1: prio
tc filter replace dev $DEV parent 1: protocol ip prio 1 u32 match ip tos 0x12 0x10 flowid 1:1
tc filter replace dev $DEV parent 1: protocol ip prio 2 u32 match ip tos 0x08 0x08 flowid 1:3
