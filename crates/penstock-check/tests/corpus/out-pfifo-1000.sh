#!/bin/bash
# 1000 packets at 512 kbit/s
# expect: PS140 9
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 512kbit ceil 512kbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 400kbit ceil 1mbit
tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 1000
tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel target 20ms
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match ip dport 21 0xffff flowid 1:10
