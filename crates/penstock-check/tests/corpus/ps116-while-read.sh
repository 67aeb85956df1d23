#!/bin/bash
# expect: PS116 5
tc qdisc replace dev eth1 root handle 1: htb default 10
while read -r ip rate; do
  tc class replace dev eth1 parent 1: classid 1:10 htb rate ${rate}mbit
done <<EOF
10.0.0.2 10
10.0.0.3 20
EOF
