#!/bin/bash
# expect: PS333 9
# expect: PS333 13
ip link add wg0 type wireguard
wg set wg0 listen-port 51999
ip addr add 10.8.0.1/24 dev wg0
ip link set wg0 up
tc qdisc replace dev wg0 root handle 1: prio
tc filter add dev wg0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 51999 0xffff flowid 1:1
ip tunnel add gre1 mode gre local 192.0.2.10 remote 198.51.100.20 ttl 64
ip link set gre1 up
tc qdisc replace dev gre1 root handle 1: prio
tc filter add dev gre1 parent 1: protocol ip prio 1 u32 match ip protocol 47 0xff flowid 1:1
