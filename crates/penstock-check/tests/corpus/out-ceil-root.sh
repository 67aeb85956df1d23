#!/bin/bash
# two classes below the qdisc hope to borrow
# expect: PS105 7
# expect: PS105 8
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit ceil 10mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 8mbit ceil 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:10
