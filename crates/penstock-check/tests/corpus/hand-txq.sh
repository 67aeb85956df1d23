#!/bin/bash
ip link set dev eth0 txqueuelen 20000
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 100
tc qdisc add dev eth0 parent 1:2 handle 20: sfq perturb 10
tc qdisc add dev eth0 parent 1:3 handle 30: sfq perturb 10
# expect: PS143 2
