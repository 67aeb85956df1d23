#!/bin/bash
# expect: PS101 9
DEV=eth2
tc qdisc replace dev $DEV root handle 1: htb default 1
awk -v dev=$DEV '{ printf "class add dev %s parent 1: classid 1:%d htb rate %dmbit\n", dev, NR, $2 }' <<'TABLE' | tc -batch -
rest 50
alice 20
TABLE
tc class add dev $DEV parent 1:2 classid 1:20 htb rate 30mbit
