#!/bin/bash
# a routing rule to a table that nothing fills
# expect: PS227 4
ip rule add fwmark 0x1 lookup 100
iptables -t mangle -A OUTPUT -p tcp --dport 25 -j MARK --set-mark 0x1
ip route add default via 10.0.0.1 dev eth1 table 200
