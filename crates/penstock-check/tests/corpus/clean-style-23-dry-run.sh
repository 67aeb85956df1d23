#!/bin/sh
# -n prints what would be done.
DO=
[ "$1" = "-n" ] && { DO=echo; shift; }
DEV=${1:-eth0}
$DO tc qdisc replace dev $DEV root handle 1: htb default 10
$DO tc class replace dev $DEV parent 1: classid 1:10 htb rate 30mbit
$DO tc qdisc replace dev $DEV parent 1:10 fq_codel
