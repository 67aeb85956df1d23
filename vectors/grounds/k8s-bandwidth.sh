#!/bin/sh
# What the bandwidth plugin of CNI does to a pair of devices.
set -e
PAIR=veth0a1b
ip link add $PAIR type veth peer name pod0
ip link set $PAIR up
ip link set pod0 up
RATE=1000000; BURST=40000
tc qdisc add dev $PAIR root handle 1: tbf rate ${RATE}bit burst ${BURST}b latency 25ms
IFB=bwp$(echo pod0 | cksum | cut -c1-6)
ip link add $IFB mtu 1500 type ifb
ip link set $IFB up
tc qdisc add dev $PAIR ingress
tc filter add dev $PAIR parent ffff: protocol all u32 match u8 0 0 flowid 1:1 action mirred egress redirect dev $IFB
tc qdisc add dev $IFB root handle 1: tbf rate $((RATE * 2))bit burst ${BURST}b latency 25ms
tc qdisc show dev $IFB
ip -br link show type ifb | awk '{print $1}'
ip -br link show type veth | awk '{print $1}' | sort
