#!/bin/sh
# expect: PS227 4
TBL=101
ip rule add fwmark 0x2 table $TBL
ip route add default via 192.168.42.129 dev eth2 metric 50
iptables -t mangle -A PREROUTING -i br-guest -j MARK --set-mark 0x2
iptables -t nat -A POSTROUTING -o eth2 -j MASQUERADE
