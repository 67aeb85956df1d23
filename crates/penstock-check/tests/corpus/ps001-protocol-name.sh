#!/bin/bash
# expect: PS001 8
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 20mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 20mbit prio 2
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol udp 0xff match ip dport 53 0xffff flowid 1:10
