#!/bin/sh
# slaves that are set down first, an address that moves from the port to the bridge, addresses below a VRF
ip link add bond0 type bond mode 802.3ad
for slave in eth1 eth2; do
    ip link set dev $slave up
    ip link set dev $slave down
    ip link set dev $slave master bond0
done
ip link set eth3 up
ip link set eth3 down master bond0
ip link set bond0 up
ip addr add 192.0.2.9/24 dev eth4
ip link add br0 type bridge
ip link set br0 up
ip addr flush dev eth4
ip link set eth4 master br0
ip addr add 192.0.2.9/24 dev br0
ip link add red type vrf table 10
ip link set red up
ip link set eth5 master red
ip addr add 10.1.0.2/24 dev eth5
