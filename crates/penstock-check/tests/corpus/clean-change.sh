#!/bin/sh
tc qdisc replace dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 2mbit ceil 10mbit
tc class change dev eth0 parent 1:1 classid 1:30 htb rate 3mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:40 htb rate 5mbit
tc class change dev eth0 parent 1:1 classid 1:40 htb rate 6mbit
tc filter add dev eth0 parent 1: protocol ip prio 7 u32 match ip dst 192.0.2.1 flowid 1:40
tc filter del dev eth0 parent 1: protocol ip prio 7 u32 match ip dst 192.0.2.1
tc filter add dev eth0 parent 1: protocol ip prio 7 u32 match ip dst 192.0.2.2 flowid 1:40
