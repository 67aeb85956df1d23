#!/bin/bash
# expect: PS343 6
ip route add default dev tun0 table 100
ip rule add fwmark 1 table 100
iptables -t mangle -A OUTPUT -p udp --dport 53 -j MARK --set-mark 1
echo 1 > /proc/sys/net/ipv4/conf/tun0/rp_filter
