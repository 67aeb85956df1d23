#!/bin/bash
# the box's own mail server
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 10mbit
tc qdisc add dev eth0 parent 1:10 fq_codel
tc qdisc add dev eth0 parent 1:30 fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 25 fw flowid 1:10
iptables -t mangle -A PREROUTING -p tcp --sport 25 -j MARK --set-mark 25
# expect: PS206 11
