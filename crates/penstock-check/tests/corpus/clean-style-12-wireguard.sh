#!/bin/bash
# Called by wg-quick: PostUp = /etc/wireguard/shape.sh %i
set -eu
WG=${1:?interface}
PEERS="10.7.0.2 10.7.0.3 10.7.0.4"
tc qdisc replace dev "$WG" root handle 1: htb default 99
tc class replace dev "$WG" parent 1: classid 1:1 htb rate 100mbit
tc class replace dev "$WG" parent 1:1 classid 1:99 htb rate 10mbit ceil 100mbit
tc qdisc replace dev "$WG" parent 1:99 fq_codel
n=2
for peer in $PEERS; do
    tc class replace dev "$WG" parent 1:1 classid 1:$n htb rate 20mbit ceil 50mbit
    tc qdisc replace dev "$WG" parent 1:$n fq_codel
    tc filter add dev "$WG" parent 1: protocol ip prio $n u32 match ip dst "$peer"/32 flowid 1:$n
    n=$((n + 1))
done
