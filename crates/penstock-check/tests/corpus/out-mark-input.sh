#!/bin/bash
# uploads of this machine marked in INPUT
# expect: PS205 4
iptables -t mangle -A INPUT -i eth0 -p tcp --dport 8080 -j MARK --set-mark 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 90mbit ceil 100mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:10
