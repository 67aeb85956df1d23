#!/bin/bash
ip route add default via 192.0.2.1 dev eth1 table 100
ip rule add fwmark 0x2 table 100
iptables -t mangle -A PREROUTING -p tcp --dport 25 -j MARK --set-mark 2
iptables -t mangle -A OUTPUT -p tcp --dport 25 -j MARK --set-mark 2
iptables -t mangle -A POSTROUTING -o eth1 -p tcp --dport 25 -j MARK --set-mark 2
