#!/bin/sh
set -e
dev=enp3s0
up=45mbit
tc qdisc del dev $dev root 2>/dev/null || true
tc -batch - <<BATCH
qdisc add dev $dev root handle 1: htb default 20
class add dev $dev parent 1: classid 1:1 htb rate $up
class add dev $dev parent 1:1 classid 1:10 htb rate 15mbit ceil $up prio 0
class add dev $dev parent 1:1 classid 1:20 htb rate 30mbit ceil $up prio 1

# leaves
qdisc add dev $dev parent 1:10 fq_codel
qdisc add dev $dev parent 1:20 fq_codel
filter add dev $dev parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:10
filter add dev $dev parent 1: protocol ipv6 prio 2 u32 match ip6 protocol 17 0xff match ip6 dport 5060 0xffff flowid 1:10
BATCH
