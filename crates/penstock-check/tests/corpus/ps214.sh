#!/bin/sh
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -m conntrack --ctstate NEW -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o eth0 -j CONNMARK --save-mark
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 8mbit ceil 10mbit prio 1
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10
# expect: PS214 3
# expect: PS250 4
