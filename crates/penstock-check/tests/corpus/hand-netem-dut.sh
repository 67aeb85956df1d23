#!/bin/bash
# netem on the sending machine, behind its own shaper
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 100mbit
tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 100ms limit 100
# expect: PS160 6
