#!/bin/bash
# htb without default and one class for a mark
# expect: PS106 6
iptables -t mangle -A POSTROUTING -o eth1 -m owner --uid-owner 2121 -j MARK --set-mark 2121
tc qdisc del dev eth1 root 2>/dev/null
tc qdisc add dev eth1 root handle 1: htb
tc class add dev eth1 parent 1: classid 1:1 htb rate 10mbit
tc filter add dev eth1 parent 1: protocol ip handle 2121 fw flowid 1:1
