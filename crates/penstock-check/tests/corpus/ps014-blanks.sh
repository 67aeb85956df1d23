#!/bin/bash
# blanks around = in an argument of sysctl
# expect: PS014 4
sysctl -w net.ipv4.ip_forward = 1
iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
