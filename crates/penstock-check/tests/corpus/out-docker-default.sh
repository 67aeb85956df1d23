#!/bin/bash
# the parent 1:1 is never made, as in countless copies
# expect: PS109 7
echo 'Starting networks'
tc qdisc del dev docker1 root 2>/dev/null
tc qdisc add dev docker1 root handle 1: htb default 12
tc class add dev docker1 parent 1:1 classid 1:12 htb rate 1600kbit ceil 1600kbit
tc qdisc add dev docker1 parent 1:12 pfifo limit 50
