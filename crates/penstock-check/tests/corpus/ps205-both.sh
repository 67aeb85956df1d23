#!/bin/bash
# One mark is set in nft's hook input, another one by iptables where it should be.
# expect: PS205 6
nft add table inet q
nft 'add chain inet q in { type filter hook input priority 0 ; }'
nft add rule inet q in tcp sport 443 meta mark set 7
iptables -t mangle -A OUTPUT -p tcp --dport 8080 -j MARK --set-mark 5
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol all prio 1 handle 7 fw classid 1:1
tc filter add dev eth0 parent 1: protocol all prio 2 handle 5 fw classid 1:2
