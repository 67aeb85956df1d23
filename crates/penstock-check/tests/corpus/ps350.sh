#!/bin/bash
# expect: PS350 5
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1:0 protocol ip prio 10 u32 match ip dst 10.1.2.3 flowid 1:2
tc qdisc add dev eth0 parent 1:2 handle 20: netem delay 300ms
