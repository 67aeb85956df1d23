#!/bin/bash
# expect: PS343 7
ip route add default via 203.0.113.1 dev eth2 table 200
ip rule add fwmark 0x2 lookup 200 priority 1000
iptables -t mangle -A PREROUTING -i br-lan -p tcp -m multiport --dports 80,443 -j MARK --set-mark 0x2
iptables -t nat -A POSTROUTING -o eth2 -j MASQUERADE
sysctl -qw net.ipv4.conf.all.rp_filter=1
