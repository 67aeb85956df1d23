#!/bin/sh
# expect: PS188 6
ip link add link ens1 name v7 type vlan id 7
ip link set v7 up
tc qdisc add dev v7 clsact
tc filter add dev v7 egress protocol 802.1Q flower vlan_id 7 action drop
