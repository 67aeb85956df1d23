#!/bin/bash
# expect: PS212 7
ip link add ifb4eth0 type ifb
ip link set ifb4eth0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 ingress
tc filter add dev eth0 ingress protocol all matchall action ctinfo dscp 0xfc000000 0x01000000 action mirred egress redirect dev ifb4eth0
tc qdisc replace dev ifb4eth0 root cake bandwidth 90mbit diffserv4 ingress
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 3074 -j DSCP --set-dscp-class CS4
