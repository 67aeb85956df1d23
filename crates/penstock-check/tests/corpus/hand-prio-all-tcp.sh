#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc qdisc add dev eth0 parent 1:2 handle 20: sfq perturb 10
tc qdisc add dev eth0 parent 1:3 handle 30: sfq perturb 10
tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_proto tcp classid 1:1
# expect: PS135 6
