#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0x100/0xff fw flowid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 443 -j MARK --set-xmark 0x100/0xff00
# expect: PS213 6
