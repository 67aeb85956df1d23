#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 0x1e
tc class add dev eth0 parent 1: classid 1:1 htb rate 50mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 20mbit ceil 50mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 30mbit ceil 50mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff match ip protocol 6 0xff flowid 1:10
# expect: PS107 3
