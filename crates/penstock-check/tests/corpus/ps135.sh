#!/bin/bash
# everything in the first band
# expect: PS135 7
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 53 0xffff flowid 1:2
tc filter add dev eth0 parent 1: protocol ip prio 9 u32 match u32 0 0 flowid 1:1
