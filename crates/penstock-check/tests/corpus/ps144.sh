#!/bin/bash
# no queue length for the leaves
# expect: PS144 5
tc qdisc del dev eth0 root 2>/dev/null
ip link set dev eth0 txqueuelen 0
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit
