#!/bin/bash
# A trunk: a VLAN device each, shaped alike, then all of them gone but one.
TRUNK=eth1
VLANS="10 20 30"
for v in $VLANS; do
	ip link add link $TRUNK name $TRUNK.$v type vlan id $v
	ip addr add 10.$v.0.1/24 dev $TRUNK.$v
	ip link set $TRUNK.$v up
	tc qdisc replace dev $TRUNK.$v root handle $v: tbf rate $((v * 10))mbit burst 64k latency 50ms
done
ip -o -4 addr show | awk '$2 ~ /\./ {print $2, $4}'
ip -d link show $TRUNK.10 | grep -o 'vlan protocol 802.1Q id [0-9]*'
ip link show $TRUNK.40 2>/dev/null || echo "no vlan 40"
ip link add link $TRUNK name $TRUNK.10 type vlan id 10; echo "again: $?"
for v in 20 30; do ip link del $TRUNK.$v; done
ip -br link | awk '{print $1}'
