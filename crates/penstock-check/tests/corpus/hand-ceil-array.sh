#!/usr/bin/env bash
set -u
WAN=enp3s0
TOTAL=20000
declare -A RATE=( [voip]=2000 [web]=10000 [bulk]=5000 )
declare -A CEIL=( [voip]=4000 [web]=20000 [bulk]=25000 )
declare -A ID=( [voip]=10 [web]=20 [bulk]=30 )
tc qdisc del dev "$WAN" root 2>/dev/null || true
tc qdisc add dev "$WAN" root handle 1: htb default 30
tc class add dev "$WAN" parent 1: classid 1:1 htb rate ${TOTAL}kbit ceil ${TOTAL}kbit
for n in voip web bulk; do
  tc class add dev "$WAN" parent 1:1 classid 1:${ID[$n]} htb rate ${RATE[$n]}kbit ceil ${CEIL[$n]}kbit
  tc qdisc add dev "$WAN" parent 1:${ID[$n]} fq_codel
done
tc filter add dev "$WAN" parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev "$WAN" parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff match ip dport 443 0xffff flowid 1:20
# expect: PS102 12
