#!/bin/bash
# two uplinks
IF1=eth0; IP1=198.51.100.10; GW1=198.51.100.1
IF2=eth1; IP2=203.0.113.10; GW2=203.0.113.1
ip route flush table 101 2>/dev/null
ip route flush table 102 2>/dev/null
ip route add default via $GW1 dev $IF1 table 101
ip route add default via $GW2 dev $IF2 table 102
ip rule add from $IP1 lookup 101 pref 1001
ip rule add from $IP2 lookup 102 pref 1002
ip rule add fwmark 0x2 lookup 102 pref 900
iptables -t mangle -A PREROUTING -i lan0 -p tcp --dport 25 -j MARK --set-mark 0x2
for i in $IF1 $IF2; do
  tc qdisc replace dev $i root cake bandwidth 40mbit
done
