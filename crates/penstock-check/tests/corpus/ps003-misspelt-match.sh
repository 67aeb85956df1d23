#!/bin/sh
# expect: PS003 5
# penstock-check: PS003
tc qdisc replace dev eth0 root cake bandwidth 20mbit diffserv4
iptables -t mangle -A POSTROUTING -o eth0 -p udp -m multipot --dports 53,123 -j DSCP --set-dscp-class CS6
