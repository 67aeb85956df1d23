#!/bin/sh
# expect: PS271 10
set -e
A=veth0
B=trunk0
ip link add $A type veth peer name ${A}p
ip link add $B type dummy
ip link set $A up; ip link set ${A}p up; ip link set $B up
tc qdisc add dev $A clsact
tc filter add dev $A ingress protocol ip prio 10 flower action vlan push id 30 pipe action mirred egress redirect dev $B
