#!/bin/bash
# strict, with marks that count; strict where rules by source find the way back; a route of the same device in main
sysctl -w net.ipv4.conf.all.rp_filter=1
sysctl -w net.ipv4.conf.all.src_valid_mark=1
ip route add default via 203.0.113.1 dev eth2 table 200
ip rule add fwmark 0x2 lookup 200
iptables -t mangle -A PREROUTING -i br-lan -p tcp --dport 443 -j MARK --set-mark 0x2
