#!/bin/bash
# ICMP of IPv4 for ip6tables
# expect: PS192 4
ip6tables -t mangle -A POSTROUTING -o eth0 -p icmp -j MARK --set-mark 1
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ipv6 prio 1 handle 1 fw classid 1:1
