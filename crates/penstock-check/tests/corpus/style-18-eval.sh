#!/bin/sh
# expect: PS002 6
# expect: PS001 8
DEV=eth0
cmd="tc qdisc replace dev $DEV root handle 1: prioo"
eval "$cmd"
opts="fq_codel limit 1000 targt 5ms"
eval "tc qdisc replace dev eth1 root \$opts"
