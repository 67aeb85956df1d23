#!/bin/bash
# expect: PS225 5
iptables -t mangle -N PICK
iptables -t mangle -A FORWARD -j PICK
iptables -t mangle -A PICK -p udp -j MARK --set-mark 0x10/0xf0
ip rule add fwmark 0x10/0xf0 lookup 100
