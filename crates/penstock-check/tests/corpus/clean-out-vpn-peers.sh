#!/bin/bash
# WireGuard peers up and down
set -e
WG=wg0
declare -A PEERS=( [10.8.0.2]=5 [10.8.0.3]=10 )
tc qdisc del dev $WG root 2>/dev/null || true
tc qdisc add dev $WG root handle 1: htb default 1
tc class add dev $WG parent 1: classid 1:1 htb rate 1000mbit quantum 60000
tc qdisc add dev $WG parent 1:1 fq_codel
id=16
for ip in "${!PEERS[@]}"; do
    hex=$(printf "%x" $id)
    tc class add dev $WG parent 1: classid 1:$hex htb rate ${PEERS[$ip]}mbit ceil ${PEERS[$ip]}mbit
    tc qdisc add dev $WG parent 1:$hex fq_codel
    tc filter add dev $WG parent 1: protocol ip prio 1 u32 match ip dst $ip/32 flowid 1:$hex
    id=$((id + 1))
done
