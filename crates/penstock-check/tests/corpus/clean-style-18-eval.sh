#!/bin/sh
# Options of each queue are kept as text and evaluated.
DEV=eth0
cmd="tc qdisc replace dev $DEV root handle 1: prio"
eval "$cmd"
for n in 1 2 3; do
    eval "opts_$n='fq_codel limit 1000 target 5ms'"
done
for n in 1 2 3; do
    eval "tc qdisc add dev \$DEV parent 1:$n handle 1$n: \$opts_$n"
done
