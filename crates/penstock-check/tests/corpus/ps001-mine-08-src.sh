#!/bin/bash
# A class for each tenant; rates in a table.
DEV=enp3s0
declare -A RATE=( [10]=20 [11]=20 [12]=40 [300]=15 )
tc qdisc del dev $DEV root >/dev/null 2>&1
tc qdisc add dev $DEV root handle 1: htb default fff r2q 100
tc class add dev $DEV parent 1: classid 1:1 htb rate 1000mbit burst 128k cburst 128k
tc class add dev $DEV parent 1:1 classid 1:fff htb rate 100mbit ceil 900mbit
tc qdisc add dev $DEV parent 1:fff fq_codel
for host in "${!RATE[@]}"; do
  id=$(printf '%x' $((host + 256)))
  tc class add dev $DEV parent 1:1 classid 1:$id htb rate ${RATE[$host]}mbit ceil 200mbit
  tc qdisc add dev $DEV parent 1:$id fq_codel
  tc filter add dev $DEV parent 1: protocol ip prio 10 u32 match ip dst 10.7.0.$host/32 flowid 1:$id
done
# expect: PS175 12
# expect: PS001 14
