#!/bin/bash
D=eth0
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1: htb default 20
tc class add dev $D parent 1: classid 1:1 htb rate 10mbit
tc class add dev $D parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit prio 10
tc class add dev $D parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit prio 7
tc qdisc add dev $D parent 1:10 fq_codel
tc qdisc add dev $D parent 1:20 fq_codel
tc filter add dev $D parent 1: protocol ip prio 1 u32 match ip tos 0x08 0x1e flowid 1:10
# expect: PS112 6
