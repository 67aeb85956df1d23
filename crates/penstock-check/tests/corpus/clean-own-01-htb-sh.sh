#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
set -eu
DEV=eth0; UP=20
tc qdisc add dev $DEV root handle 1: htb default 30
tc class add dev $DEV parent 1: classid 1:1 htb rate ${UP}mbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate $((UP/4))mbit ceil ${UP}mbit prio 0
tc class add dev $DEV parent 1:1 classid 1:30 htb rate $((UP*3/4))mbit ceil ${UP}mbit prio 1
for c in 10 30; do tc qdisc add dev $DEV parent 1:$c handle $c: fq_codel; done
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 53 0xffff flowid 1:10
