#!/bin/bash
add() { tc class add dev eth0 parent 1:1 classid 1:$1 htb rate $2 ceil 50mbit prio $3; }
tc qdisc replace dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 50mbit
add 10 10mbit 5
add 20 20mbit 1
add 30 20mbit 2
iptables -t mangle -A POSTROUTING -o eth0 -m dscp --dscp-class EF -j CLASSIFY --set-class 1:10
iptables -t mangle -A POSTROUTING -o eth0 -m dscp --dscp-class CS1 -j CLASSIFY --set-class 1:20
# expect: PS118 5
