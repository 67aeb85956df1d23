#!/bin/bash
# expect: PS344 3
sysctl -w net.ipv4.ip_forward=0
iptables -t nat -A POSTROUTING -o eth0 -s 192.168.50.0/24 -j MASQUERADE
iptables -A FORWARD -i eth1 -o eth0 -j ACCEPT
