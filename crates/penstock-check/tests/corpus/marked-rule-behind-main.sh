#!/bin/sh
# expect: PS336 4
ip route add default via 10.9.0.1 dev tun1 table 77
ip rule add fwmark 0x77 table 77 pref 40000
iptables -t mangle -A PREROUTING -i br0 -s 192.168.7.0/24 -j MARK --set-mark 0x77
