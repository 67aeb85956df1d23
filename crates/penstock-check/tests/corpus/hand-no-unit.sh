#!/bin/bash
D=eth0
RATE=512
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1: htb default 10
tc class add dev $D parent 1: classid 1:10 htb rate $RATE
tc qdisc add dev $D parent 1:10 pfifo limit 5
# expect: PS115 6
# expect: PS140 7
