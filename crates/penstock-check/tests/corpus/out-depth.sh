#!/bin/bash
# nine levels
# expect: PS002 8
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 9
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
for i in 2 3 4 5 6 7 8 9; do
    tc class add dev eth0 parent 1:$((i-1)) classid 1:$i htb rate 9mbit
done
