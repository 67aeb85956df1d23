#!/bin/bash
# marks only what has none yet; gateways within /30
# policy routing, two uplinks
ip addr add 203.0.113.2/30 dev wan1
ip link set wan1 up
ip addr add 198.51.100.2/30 dev wan2
ip link set wan2 up
ip route add default via 203.0.113.1 dev wan1 table 101
ip route add default via 198.51.100.1 dev wan2 table 102
ip route add default via 203.0.113.1
ip rule add fwmark 0x1 table 101
ip rule add fwmark 0x2 table 102
iptables -t mangle -A PREROUTING -i lan0 -j CONNMARK --restore-mark
iptables -t mangle -A PREROUTING -i lan0 -m mark --mark 0 -p tcp --dport 443 -j MARK --set-mark 0x1
iptables -t mangle -A PREROUTING -i lan0 -m mark --mark 0 -j MARK --set-mark 0x2
iptables -t mangle -A PREROUTING -i lan0 -j CONNMARK --save-mark
tc qdisc replace dev wan1 root cake bandwidth 20mbit
tc qdisc replace dev wan2 root cake bandwidth 50mbit
