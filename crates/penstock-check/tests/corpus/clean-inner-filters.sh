#!/bin/bash
# filters in two steps
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:2 htb rate 6mbit ceil 10mbit
tc class add dev eth0 parent 1:2 classid 1:21 htb rate 3mbit ceil 10mbit
tc class add dev eth0 parent 1:2 classid 1:22 htb rate 3mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 4mbit ceil 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.2.0.0/16 flowid 1:2
tc filter add dev eth0 parent 1:2 protocol ip prio 1 u32 match ip dst 10.2.1.0/24 flowid 1:21
tc filter add dev eth0 parent 1:2 protocol ip prio 2 u32 match u32 0 0 flowid 1:22
