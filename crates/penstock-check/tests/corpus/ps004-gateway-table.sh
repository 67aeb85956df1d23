#!/bin/bash
# a gateway outside the /30, in a table of its own
# expect: PS004 7
ip link add wan1 type dummy
ip addr add 203.0.113.2/30 dev wan1
ip link set wan1 up
ip route add default via 203.0.113.5 dev wan1 table 101
ip rule add fwmark 1 table 101
iptables -t mangle -A PREROUTING -i br-lan -p tcp --dport 443 -j MARK --set-mark 1
