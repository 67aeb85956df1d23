#!/bin/bash
# marked in the hook input
# expect: PS205 6
nft add table inet q
nft 'add chain inet q in { type filter hook input priority 0 ; }'
nft add rule inet q in tcp sport 443 meta mark set 7
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol all prio 1 handle 7 fw classid 1:1
