#!/bin/sh
# ICMP of IPv4 in packets of IPv6
# expect: PS192 6
tc qdisc del dev eth1 root 2>/dev/null
tc qdisc add dev eth1 root handle 1: prio
tc filter add dev eth1 parent 1: protocol ipv6 prio 5 u32 match ip6 protocol 1 0xff flowid 1:1
