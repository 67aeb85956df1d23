#!/bin/bash
# the same over IPv6
# expect: PS004 6
ip -6 addr add 2001:db8:1::2/64 dev eth0
ip link set dev eth0 up
ip -6 route add default via 2001:db8:2::1
tc qdisc replace dev eth0 root cake bandwidth 50mbit
