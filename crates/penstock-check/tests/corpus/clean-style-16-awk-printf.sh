#!/bin/bash
# Commands made by awk from a table and read by tc.
DEV=eth2
tc qdisc replace dev $DEV root handle 1: htb default 1
awk -v dev=$DEV '{ printf "class add dev %s parent 1: classid 1:%d htb rate %dmbit\n", dev, NR, $2; printf "qdisc add dev %s parent 1:%d fq_codel\n", dev, NR }' <<'TABLE' | tc -batch -
rest 50
alice 20
bob 30
TABLE
