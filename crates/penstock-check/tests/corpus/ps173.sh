#!/bin/bash
# filters on the inner class only
# expect: PS173 9
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 4mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 6mbit ceil 10mbit
tc filter add dev eth0 parent 1:1 protocol ip prio 1 u32 match ip dst 10.0.1.1 flowid 1:20
