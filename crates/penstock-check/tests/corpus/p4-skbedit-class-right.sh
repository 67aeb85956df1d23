#!/bin/sh
# expect: PS250 9
IF=eth0
tc qdisc del dev $IF root 2>/dev/null
tc qdisc add dev $IF root handle 1: htb default 30
tc class add dev $IF parent 1: classid 1:1 htb rate 20mbit
tc class add dev $IF parent 1:1 classid 1:10 htb rate 10mbit ceil 20mbit
tc class add dev $IF parent 1:1 classid 1:30 htb rate 10mbit ceil 20mbit
tc qdisc add dev $IF clsact
tc filter add dev $IF egress protocol ip prio 1 flower ip_proto tcp dst_port 22 action skbedit priority 1:10
