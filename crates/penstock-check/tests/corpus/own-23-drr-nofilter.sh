#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: drr
tc class add dev eth0 parent 1: classid 1:1 drr
tc class add dev eth0 parent 1: classid 1:2 drr
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff match ip protocol 6 0xff flowid 1:1
# expect: PS134 3
# expect: PS175 5
