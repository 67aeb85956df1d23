#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 50mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 20mbit ceil 50mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 30mbit ceil 50mbit
tc filter add dev eth0 parent 1: protocol all prio 1 handle 1 fw classid 1:10
iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark
iptables -t mangle -A PREROUTING -p tcp --dport 22 -m conntrack --ctstate NEW -j MARK --set-mark 1
iptables -t mangle -A PREROUTING -j CONNMARK --save-mark
ip6tables -t mangle -A PREROUTING -j CONNMARK --restore-mark
ip6tables -t mangle -A PREROUTING -p tcp --dport 22 -m conntrack --ctstate NEW -j MARK --set-mark 1
ip6tables -t mangle -A PREROUTING -j CONNMARK --save-mark
