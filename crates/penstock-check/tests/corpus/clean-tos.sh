#!/bin/bash
# bytes of the old ToS
# TOS the old way
iptables -t mangle -A POSTROUTING -p tcp --dport 22 -j TOS --set-tos Minimize-Delay
iptables -t mangle -A POSTROUTING -p tcp --dport 20 -j TOS --set-tos 0x08/0x1c
iptables -t mangle -A POSTROUTING -m tos --tos 16 -j ACCEPT
tc qdisc replace dev eth0 root handle 1: prio
