#!/bin/bash
# What comes in by a device is marked in INPUT; a packet of the machine's own has no -i.
# expect: PS205 4
iptables -t mangle -A INPUT -i eth0 -p tcp --dport 8080 -j MARK --set-mark 5
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw classid 1:1
