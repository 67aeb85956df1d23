#!/bin/bash
# ports of fragments that have none
# expect: PS189 8
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match u16 0x0100 0x1f00 at 6 match ip protocol 17 0xff match ip dport 2049 0xffff flowid 1:10
