#!/bin/bash
# an IPv6 network meant for a host
# expect: PS196 5
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ipv6 prio 1 u32 match ip6 dst 2001:db8:1::5/64 flowid 1:1
