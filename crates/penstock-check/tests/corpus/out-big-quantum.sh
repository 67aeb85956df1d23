#!/bin/bash
# a gigabit and r2q 10
# expect: PS110 8
# expect: PS110 9
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 1gbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 500mbit ceil 1gbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 500mbit ceil 1gbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.1.0.0/16 flowid 1:10
