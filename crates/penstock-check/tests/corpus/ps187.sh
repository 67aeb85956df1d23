#!/bin/sh
# ppp0 runs over eth1
pppd plugin rp-pppoe.so eth1 user foo
tc qdisc add dev eth1 root handle 1: htb default 30
tc class add dev eth1 parent 1: classid 1:10 htb rate 2mbit
tc class add dev eth1 parent 1: classid 1:30 htb rate 8mbit
tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match ip dport 22 0xffff flowid 1:10
# expect: PS187 7
# expect: PS250 4
