#!/bin/bash
# expect: PS188 7
ip link add link eth0 name eth0.20 type vlan id 20
ip link set eth0.20 up
tc qdisc replace dev eth0.20 root handle 1: prio
# the tag comes later
tc filter add dev eth0.20 parent 1: protocol 802.1q prio 1 u32 match ip protocol 17 0xff flowid 1:1
