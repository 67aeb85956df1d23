#!/bin/bash
sysctl -w net.ipv4.conf.all.rp_filter=1
ip route add default via 203.0.113.1 dev eth2 table 200
ip rule add from 203.0.113.2 lookup 200
ip rule add fwmark 0x2 lookup 200
iptables -t mangle -A OUTPUT -p tcp --dport 443 -j MARK --set-mark 0x2
