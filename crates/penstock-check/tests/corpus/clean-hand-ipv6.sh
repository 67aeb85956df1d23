#!/bin/bash
# dual stack
DEV=eth0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 30
tc class add dev $DEV parent 1: classid 1:1 htb rate 20mbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 8mbit ceil 20mbit prio 1
tc class add dev $DEV parent 1:1 classid 1:30 htb rate 12mbit ceil 20mbit prio 2
tc qdisc add dev $DEV parent 1:10 fq_codel
tc qdisc add dev $DEV parent 1:30 fq_codel
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:10
tc filter add dev $DEV parent 1: protocol ipv6 prio 2 u32 match ip6 protocol 17 0xff match ip6 dport 5060 0xffff flowid 1:10
tc filter add dev $DEV parent 1: protocol ipv6 prio 3 flower ip_proto udp src_port 5060 classid 1:10
