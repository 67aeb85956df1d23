#!/bin/sh
# expect: PS004 6
#
TRUNK=eth0
for vid in 10 20; do
    ip link add link $TRUNK name $TRUNK.$vid type vlan idd $vid
    ip link set $TRUNK.$vid up
    tc qdisc replace dev eth0.10 root handle 1: htb default 1
    # In kilobits.
    tc class replace dev eth0.10 parent 1: classid 1:1 htb rate 5000
done
