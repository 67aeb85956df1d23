#!/bin/bash
while read -r host dev rate; do
    ssh -n "$host" true || continue
    ssh "$host" bash <<EOF
set -e
tc qdisc replace dev $dev root handle 1: htb default 1
tc class replace dev $dev parent 1: classid 1:1 htb rate $rate
tc qdisc replace dev $dev parent 1:1 fq_codel
EOF
done < hosts.txt
