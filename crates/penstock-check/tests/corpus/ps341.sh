#!/bin/sh
# expect: PS341 6
modprobe bonding
ip link add bond0 type bond mode active-backup miimon 100
ip link set eth1 up
ip link set eth1 master bond0
ip link set eth2 down
ip link set eth2 master bond0
ip link set bond0 up
