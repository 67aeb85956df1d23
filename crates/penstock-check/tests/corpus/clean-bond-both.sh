#!/bin/sh
ip link add bond0 type bond mode 802.3ad
for s in eth0 eth1; do
    ip link set $s down
    ip link set $s master bond0
    tc qdisc replace dev $s root fq_codel
done
ip link set bond0 up
