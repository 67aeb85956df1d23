#!/bin/bash
# expect: PS170 13
# expect: PS112 11
set -eu
WG=${1:?interface}
tc qdisc replace dev "$WG" root handle 1: htb default 99
tc class replace dev "$WG" parent 1: classid 1:1 htb rate 100mbit
tc class replace dev "$WG" parent 1:1 classid 1:99 htb rate 10mbit ceil 100mbit
n=2
for peer in 10.7.0.2 10.7.0.3; do
    tc class replace dev "$WG" parent 1:1 classid 1:$n htb rate 20mbit ceil 50mbit prio 9
    tc qdisc replace dev "$WG" parent 1:$n fq_codel
    tc filter add dev "$WG" protocol ip prio $n u32 match ip dst "$peer"/32 flowid 2:$n
    n=$((n + 1))
done
