#!/bin/bash
# a code point as a whole ToS byte
# expect: PS197 4
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 5060 -j TOS --set-tos 46
tc qdisc replace dev eth0 root cake bandwidth 10mbit diffserv4
