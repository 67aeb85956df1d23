#!/bin/sh
# expect: PS001 9
#
DO=
[ "$1" = "-n" ] && { DO=echo; shift; }
DEV=${1:-eth0}
$DO tc qdisc replace dev $DEV root handle 1: htb default 10
# The class is refused for its word.
$DO tc class replace dev $DEV parent 1: classid 1:10 htb rat 30mbit
