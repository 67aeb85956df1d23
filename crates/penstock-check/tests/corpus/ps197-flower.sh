#!/bin/sh
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit
tc class add dev eth0 parent 1: classid 1:30 htb rate 8mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_tos 46 classid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 flower src_ip 10.0.0.5/24 classid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip protocol 6 0xff match ip sport 80 0xffff match ip dport 80 0xffff flowid 1:10
# expect: PS183 7
# expect: PS196 6
# expect: PS197 5
# expect: PS250 2
