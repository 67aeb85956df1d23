#!/bin/sh
# expect: PS211 7
# penstock-check: PS211
tc qdisc replace dev eth0 root handle 2: htb default 20
tc class replace dev eth0 parent 2: classid 2:10 htb rate 10mbit
tc class replace dev eth0 parent 2: classid 2:20 htb rate 20mbit
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j CLASSIFY --set-class 1:10
