#!/bin/sh
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 6 fw flowid 1:10
ipt="iptables -t mangle"
$ipt -A POSTROUTING -o eth0 -p tcp --dport 22 -m state --state NEW -j MARK --set-mark 6
$ipt -A POSTROUTING -o eth0 -p tcp --dport 25 -m state --state NEW -j CLASSIFY --set-class 1:10
# expect: PS215 8
# expect: PS215 9
