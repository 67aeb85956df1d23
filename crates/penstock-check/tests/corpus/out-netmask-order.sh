#!/bin/bash
# the wide network stands before the host in it
# expect: PS180 11
IF=br0
tc qdisc replace dev $IF root handle 1: htb default 99
tc class add dev $IF parent 1: classid 1:1 htb rate 100mbit
tc class add dev $IF parent 1:1 classid 1:10 htb rate 20mbit ceil 50mbit
tc class add dev $IF parent 1:1 classid 1:20 htb rate 40mbit ceil 100mbit
tc class add dev $IF parent 1:1 classid 1:99 htb rate 40mbit ceil 100mbit
tc filter add dev $IF parent 1: protocol ip prio 10 u32 match ip dst 192.168.1.0/24 flowid 1:10
tc filter add dev $IF parent 1: protocol ip prio 20 u32 match ip dst 192.168.1.2/32 flowid 1:20
