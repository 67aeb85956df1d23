#!/bin/sh
: "${TC:=/sbin/tc}" "${IP:=/sbin/ip}"
: ${RATE:=25mbit}
DEV=${1-eth0}
"$TC" qdisc del dev "$DEV" root >/dev/null 2>&1
"$TC" qdisc add dev "$DEV" root handle 1: tbf rate "$RATE" burst 64kb latency 40ms
"$TC" qdisc add dev "$DEV" parent 1:1 handle 2: fq_codel
"$IP" -s link show dev "$DEV"
