#!/bin/bash
# the connection is marked, the packet is not
# expect: PS200 8
nft add table inet q
nft 'add chain inet q post { type filter hook postrouting priority mangle ; }'
nft add rule inet q post oifname eth0 tcp dport 22 ct mark set 7
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol all prio 1 handle 7 fw classid 1:1
