#!/bin/bash
# a quantum below 1000
# expect: PS110 7
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20 r2q 10
tc class add dev eth0 parent 1: classid 1:1 htb rate 128kbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 28kbit ceil 128kbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 100kbit ceil 128kbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:10
