#!/bin/bash
# a fourth band of three
# expect: PS170 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.1 flowid 1:4
