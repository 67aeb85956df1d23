#!/bin/sh
# expect: PS239 6
ip link add bond0 type bond mode 802.3ad
for s in eth0 eth1; do ip link set $s down; ip link set $s master bond0; done
ip link set bond0 up
tc qdisc replace dev eth0 root tbf rate 100mbit burst 50k latency 30ms
