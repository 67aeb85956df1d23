#!/bin/bash
# Rules with matches that are not simulated stand all the same: chains are led to, marks are set.
set -u
iptables -t mangle -F
iptables -t mangle -N DIVERT
iptables -t mangle -A PREROUTING -p tcp -m socket --transparent -j DIVERT
iptables -t mangle -A DIVERT -j MARK --set-mark 1
iptables -t mangle -A DIVERT -j ACCEPT
iptables -t mangle -A PREROUTING -p tcp --dport 80 -j TPROXY --on-port 3129 --tproxy-mark 0x1/0x1
ip rule add fwmark 1 lookup 100
ip route add local 0.0.0.0/0 dev lo table 100
iptables -t mangle -A POSTROUTING -o eth0 -m cgroup --path backup -j MARK --set-mark 0x30
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 80mbit
tc class add dev eth0 parent 1: classid 1:30 htb rate 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0x30 fw flowid 1:30
