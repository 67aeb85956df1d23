#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 512kbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 64kbit ceil 512kbit quantum 600
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 448kbit ceil 512kbit quantum 1514
tc qdisc add dev eth0 parent 1:10 sfq perturb 10 limit 30
tc qdisc add dev eth0 parent 1:20 sfq perturb 10 limit 30
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:10
# expect: PS111 5
