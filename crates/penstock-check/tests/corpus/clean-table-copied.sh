#!/bin/bash
# a table that a loop fills
ip rule add iif eth1 lookup 50
ip rule add fwmark 0x100 lookup 50 prio 100
ip route flush table 50
ip route show table main | while read -r r; do ip route add $r table 50; done
iptables -t mangle -A PREROUTING -i eth1 -j MARK --set-xmark 0x100/0xff00
