#!/bin/bash
# prio 8 and 9
# expect: PS112 9
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit prio 1
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 4mbit ceil 10mbit prio 5
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 2mbit ceil 10mbit prio 9
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dst 10.0.0.0/8 flowid 1:20
