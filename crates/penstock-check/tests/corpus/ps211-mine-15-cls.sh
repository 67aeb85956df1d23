#!/bin/sh
# No filters: iptables names the classes.
DEV=eth0
iptables -t mangle -F POSTROUTING
iptables -t mangle -A POSTROUTING -o $DEV -p tcp --sport 22 -j CLASSIFY --set-class 1:10
iptables -t mangle -A POSTROUTING -o $DEV -p tcp -m multiport --sports 80,443 -j CLASSIFY --set-class 1:21
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 30
tc class add dev $DEV parent 1: classid 1:1 htb rate 100mbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 5mbit ceil 100mbit prio 0
tc class add dev $DEV parent 1:1 classid 1:20 htb rate 60mbit ceil 100mbit prio 1
tc class add dev $DEV parent 1:1 classid 1:30 htb rate 35mbit ceil 100mbit prio 2
# expect: PS211 6
