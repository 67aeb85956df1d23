#!/bin/bash
# DSCP 46 with the mask of DSCPs: a wider mask would not help, the value was not shifted.
# expect: PS197 7
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc qdisc add dev eth0 parent 1:1 handle 10: fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 46 0xfc flowid 1:1
