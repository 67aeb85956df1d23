#!/bin/sh
# the last rule marks everything again
# expect: PS208 8
IPT="iptables -t mangle"
$IPT -F
$IPT -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 1
$IPT -A POSTROUTING -o eth0 -p udp --dport 53 -j MARK --set-mark 1
$IPT -A POSTROUTING -o eth0 -j MARK --set-mark 2
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 3mbit ceil 8mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 8mbit prio 1
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 2 fw flowid 1:20
