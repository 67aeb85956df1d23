#!/bin/bash
# expect: PS204 5
tc qdisc replace dev eth1 root handle 1: prio
# penstock-check: PS204
iptables -t mangle -A FORWARD -i eth1 -o eth0 -p tcp --dport 25 -j MARK --set-mark 6
tc filter replace dev eth1 parent 1: protocol ip prio 1 handle 6 fw flowid 1:3
