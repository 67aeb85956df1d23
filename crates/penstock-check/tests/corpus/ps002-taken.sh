#!/bin/sh
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit
tc qdisc add dev eth0 parent 1:10 handle 20: fq_codel
tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 prio 1 u32 match ip6 priority 0x10 0xff flowid 1:10
tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:10
# expect: PS002 7
# expect: PS002 9
# expect: PS002 10
