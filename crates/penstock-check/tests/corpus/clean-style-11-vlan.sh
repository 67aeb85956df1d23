#!/bin/sh
# One shaper for each VLAN of a trunk.
TRUNK=eth0
for vid in 10 20 30; do
    ip link show $TRUNK.$vid > /dev/null 2>&1 || ip link add link $TRUNK name $TRUNK.$vid type vlan id $vid
    ip link set $TRUNK.$vid up
    case $vid in
        10) rate=50mbit ;;
        20) rate=20mbit ;;
        *)  rate=5mbit ;;
    esac
    tc qdisc replace dev $TRUNK.$vid root handle 1: htb default 1
    tc class replace dev $TRUNK.$vid parent 1: classid 1:1 htb rate $rate
    tc qdisc replace dev $TRUNK.$vid parent 1:1 fq_codel
done
