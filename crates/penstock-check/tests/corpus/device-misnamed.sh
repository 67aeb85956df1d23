#!/bin/bash
# expect: PS107 6
# expect: PS001 8
DEV=enp2s0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 10
tc class add dev $DEV parent 1: classid 1:1 htb rate 50mbit
tc class add dev $DEVICE parent 1:1 classid 1:10 htb rate 50mbit
