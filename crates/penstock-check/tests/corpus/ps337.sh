#!/bin/bash
# expect: PS337 11
ip addr add 192.0.2.2/24 dev eth1
ip link set eth1 up
ip route add 198.51.100.0/24 via 192.0.2.1 dev eth1 realm 2
tc qdisc del dev eth1 root 2>/dev/null
tc qdisc add dev eth1 root handle 1: htb default 30
tc class add dev eth1 parent 1: classid 1:20 htb rate 10mbit
tc class add dev eth1 parent 1: classid 1:30 htb rate 10mbit
# penstock-check: PS337
tc filter add dev eth1 parent 1:0 protocol ip prio 100 route to 20 classid 1:20
tc filter add dev eth1 parent 1:0 protocol ip prio 100 route to 2 classid 1:20
