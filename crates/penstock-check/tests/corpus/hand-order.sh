#!/bin/bash
# catch-all first
D=eth0
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1:0 htb default 30
tc class add dev $D parent 1:0 classid 1:1 htb rate 8mbit
tc class add dev $D parent 1:1 classid 1:10 htb rate 4mbit ceil 8mbit
tc class add dev $D parent 1:1 classid 1:30 htb rate 4mbit ceil 8mbit
tc qdisc add dev $D parent 1:10 fq_codel
tc qdisc add dev $D parent 1:30 fq_codel
tc filter add dev $D parent 1:0 protocol ip prio 1 matchall flowid 1:30
tc filter add dev $D parent 1:0 protocol ip prio 2 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:10
# expect: PS180 12
