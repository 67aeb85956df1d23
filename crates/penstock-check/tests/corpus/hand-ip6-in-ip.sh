#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 50
tc qdisc add dev eth0 parent 1:2 handle 20: sfq perturb 10
tc qdisc add dev eth0 parent 1:3 handle 30: sfq perturb 10
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip6 dst 2001:db8:1::/48 flowid 1:1
# expect: PS192 7
