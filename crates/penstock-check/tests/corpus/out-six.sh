#!/bin/bash
# IPv6 with IPv4's words
# expect: PS192 7
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:1
tc filter add dev eth0 parent 1: protocol ipv6 prio 2 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:1
