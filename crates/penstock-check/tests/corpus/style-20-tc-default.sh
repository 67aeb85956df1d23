#!/bin/sh
# expect: PS122 7
# expect: PS004 8
: "${TC:=/sbin/tc}" "${IP:=/sbin/ip}"
RATE=25mbit
DEV=${1-eth0}
"$TC" qdisc replace dev "$DEV" root handle 1: tbf rate "$RATE" burst 20mb latency 40ms
"$IP" link set dev "$DEV" txqueuelen 1000 mtu ${RAET:+1400} up
