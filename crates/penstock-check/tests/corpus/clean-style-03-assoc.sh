#!/bin/bash
# Rates of customers in an associative array.
set -eu
declare -A RATE=( [10.20.0.11]=20mbit [10.20.0.12]=50mbit [10.20.0.13]=10mbit )
LAN=br-lan
tc qdisc del dev "$LAN" root 2>/dev/null || :
tc qdisc add dev "$LAN" root handle 1: htb default fff
tc class add dev "$LAN" parent 1: classid 1:1 htb rate 200mbit
tc class add dev "$LAN" parent 1:1 classid 1:fff htb rate 5mbit ceil 200mbit
tc qdisc add dev "$LAN" parent 1:fff fq_codel
for host in "${!RATE[@]}"; do
    minor=$(printf '%x' "$((100 + ${host##*.}))")
    tc class add dev "$LAN" parent 1:1 classid "1:$minor" htb rate "${RATE[$host]}"
    tc qdisc add dev "$LAN" parent "1:$minor" fq_codel
    tc filter add dev "$LAN" parent 1: protocol ip prio 1 u32 match ip dst "$host/32" flowid "1:$minor"
done
