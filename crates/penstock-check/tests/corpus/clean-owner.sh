#!/bin/bash
# users by name
# expect: PS110 8
iptables -t mangle -A POSTROUTING -m owner --uid-owner backup -j CLASSIFY --set-class 1:20
iptables -t mangle -A OUTPUT -m owner --gid-owner games -j DSCP --set-dscp-class EF
tc qdisc replace dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:1 htb rate 800mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 600mbit ceil 800mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 200mbit ceil 200mbit
