#!/bin/sh
# expect: PS227 5
ip route flush table 201
ip route add default via 198.51.100.1 dev eth2 table 201
ip rule add fwmark 0x19 table isp2
iptables -t mangle -A PREROUTING -i br-lan -p tcp --dport 25 -j MARK --set-mark 0x19
