#!/bin/bash
D=eth0
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1: htb default 10
tc class add dev $D parent 1: classid 1:10 htb rate 100mbps ceil 100mbps
tc qdisc add dev $D parent 1:10 fq_codel
# expect: PS114 5
