#!/bin/sh
# expect: PS001 14
# expect: PS105 12
set -e
dev=enp3s0
up=45mbit
tc qdisc del dev $dev root 2>/dev/null || true
# -force goes on behind what is refused.
tc -force -batch - <<BATCH
qdisc add dev $dev root handle 1: htb default 20
class add dev $dev parent 1: classid 1:1 htb rate $up
class add dev $dev parent 1: classid 1:10 htb rate 15mbit ceil $up
class add dev $dev parent 1:1 classid 1:20 htb rate 30mbit ceil $up
tc qdisc add dev $dev parent 1:20 fq_codel
BATCH
