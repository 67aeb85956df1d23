#!/bin/sh
DEV=eth1
ip route replace 10.8.0.0/16 via 192.168.1.254 dev $DEV realm 4
ip route replace 10.9.0.0/16 via 192.168.1.254 dev $DEV realm 6
tc qdisc replace dev $DEV root handle 1: htb default 30
tc class replace dev $DEV parent 1: classid 1:1 htb rate 80mbit
tc class replace dev $DEV parent 1:1 classid 1:10 htb rate 30mbit ceil 80mbit
tc class replace dev $DEV parent 1:1 classid 1:20 htb rate 30mbit ceil 80mbit
tc class replace dev $DEV parent 1:1 classid 1:30 htb rate 20mbit ceil 80mbit
tc filter add dev $DEV parent 1: protocol ip prio 100 route to 4 classid 1:10
tc filter add dev $DEV parent 1: protocol ip prio 100 route to 6 classid 1:20
