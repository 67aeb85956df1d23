#!/bin/bash
# expect: PS001 10
IFACE=$1
[ -n "$IFACE" ] || { echo "usage: $0 IFACE" >&2; exit 1; }
tc qdisc replace dev "$IFACE" parent root handle 100 taprio \
    num_tc 3 \
    map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 \
    queues 1@0 1@1 2@2 \
    base-time 1000000000 \
    sched-entry S 01 300us \
    sched-entry S 02 300000 \
    clockid CLOCK_TAI
