#!/bin/bash
IFACE=$1
BASE=${2:-1000000000}
[ -n "$IFACE" ] || { echo "usage: $0 IFACE [BASE]" >&2; exit 1; }
tc qdisc replace dev "$IFACE" parent root handle 100 taprio \
    num_tc 3 \
    map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 \
    queues 1@0 1@1 2@2 \
    base-time "$BASE" \
    sched-entry S 01 300000 \
    sched-entry S 02 300000 \
    sched-entry S 04 400000 \
    clockid CLOCK_TAI
tc -s qdisc show dev "$IFACE"
