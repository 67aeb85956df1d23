#!/bin/bash
# later fragments by port
# expect: PS189 4
iptables -t mangle -A POSTROUTING -f -p udp --dport 2049 -j MARK --set-mark 1
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10
