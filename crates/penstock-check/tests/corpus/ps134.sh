#!/bin/bash
# drr without anything for the rest
# expect: PS134 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: drr
tc class add dev eth0 parent 1: classid 1:1 drr quantum 1514
tc class add dev eth0 parent 1: classid 1:2 drr quantum 3028
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.1.0.0/16 flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dst 10.2.0.0/16 flowid 1:2
