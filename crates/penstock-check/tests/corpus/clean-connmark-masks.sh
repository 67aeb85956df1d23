#!/bin/bash
iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark --mask 0xff
iptables -t mangle -A POSTROUTING -p tcp --dport 22 -j MARK --set-mark 0x1/0xff
iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark --mask 0xffff
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 20mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 20mbit prio 2
tc filter add dev eth0 parent 1: protocol ip handle 1 fw flowid 1:10
