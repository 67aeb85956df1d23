#!/bin/bash
# a routing rule for a mark that nothing sets
# expect: PS228 5
ip route add default dev tun0 table 100
ip rule add fwmark 0x2 lookup 100
iptables -t mangle -A OUTPUT -m owner --uid-owner vpn -j MARK --set-mark 0x1
