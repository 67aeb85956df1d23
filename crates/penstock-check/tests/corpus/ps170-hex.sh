#!/bin/bash
# sixteen for 10
# expect: PS170 8
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit
tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.1 flowid 1:16
