#!/bin/sh
# expect: PS342 7
ip link add br0 type bridge
ip link set br0 up
ip link set eth1 master br0
ip link set eth2 master br0
ip addr add 192.168.77.1/24 dev eth1
