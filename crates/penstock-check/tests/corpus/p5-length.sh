#!/bin/bash
# expect: PS195 4
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match u16 0x0000 0x00c0 at 2 flowid 1:1
