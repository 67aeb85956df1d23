#!/bin/bash
D=eth0
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1: htb default ff
last=1:
for ((i=1; i<=8; i++)); do
    tc class add dev $D parent $last classid 1:$i htb rate 20mbit
    last=1:$i
done
tc class add dev $D parent 1:8 classid 1:ff htb rate 20mbit
# expect: PS002 10
