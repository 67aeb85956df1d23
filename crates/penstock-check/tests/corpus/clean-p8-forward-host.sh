#!/bin/sh
sysctl -w net.ipv4.ip_forward=0
iptables -P FORWARD DROP
iptables -A INPUT -p tcp --dport 22 -j ACCEPT
