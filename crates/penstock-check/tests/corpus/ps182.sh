#!/bin/sh
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match u16 0x0016 0xffff at 0 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dst 10.0.0.0/9 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip dst 10.128.0.0/9 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 4 u32 match ip dst 10.0.0.0/8 flowid 1:20
# expect: PS182 9
# expect: PS182 6
