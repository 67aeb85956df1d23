#!/bin/bash
# classes 1:1 .. counted in decimal, default too
DEV=eth0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 999
tc class add dev $DEV parent 1: classid 1:1 htb rate 100mbit
tc class add dev $DEV parent 1:1 classid 1:999 htb rate 10mbit ceil 100mbit
tc qdisc add dev $DEV parent 1:999 fq_codel
n=0
for host in 11 12 13; do
  n=$((n+1))
  id=$(printf '%x' $((16#$host)))
  tc class add dev $DEV parent 1:1 classid 1:$host htb rate 10mbit ceil 50mbit
  tc qdisc add dev $DEV parent 1:$host fq_codel
  hexid=$(printf '%x' $host)
  tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.$host/32 flowid 1:$hexid
done
# expect: PS170 16
