#!/bin/bash
ip link add wg0 type wireguard
wg set wg0 listen-port 51820
ip addr add 10.8.0.1/24 dev wg0
ip link set wg0 up
tc qdisc replace dev wg0 root handle 1: prio
tc filter add dev wg0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 53 0xffff flowid 1:1
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 51820 0xffff flowid 1:1
