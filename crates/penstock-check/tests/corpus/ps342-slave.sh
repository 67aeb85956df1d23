#!/bin/sh
# expect: PS342 4
ip link add bond0 type bond mode balance-rr
ip address add 10.0.0.2/24 dev eth1
ip link set eth1 down
ip link set eth1 master bond0
ip link set bond0 up
