#!/bin/bash
# expect: PS225 5
ip route add default via 192.0.2.1 dev eth1 table 100
ip rule add fwmark 0x2 table 100
iptables -t mangle -A POSTROUTING -p tcp --dport 25 -j MARK --set-mark 2
