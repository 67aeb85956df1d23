#!/bin/sh
# expect: PS344 4
iptables -A FORWARD -i lan -o wan -j ACCEPT
echo 0 > /proc/sys/net/ipv4/ip_forward
