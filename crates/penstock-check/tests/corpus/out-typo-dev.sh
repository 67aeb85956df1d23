#!/bin/bash
# one command names another device
# (said once)
# expect: PS238 10
tc qdisc del dev enp3s0 root 2>/dev/null
tc qdisc add dev enp3s0 root handle 1: htb default 20
tc class add dev enp3s0 parent 1: classid 1:1 htb rate 30mbit
tc class add dev enp3s0 parent 1:1 classid 1:10 htb rate 10mbit ceil 30mbit
tc class add dev enp3s0 parent 1:1 classid 1:20 htb rate 20mbit ceil 30mbit
tc filter add dev enp3so parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:10
