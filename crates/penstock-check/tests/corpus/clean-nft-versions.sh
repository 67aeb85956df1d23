#!/bin/bash
# a table for each version of IP
# two tables, each for its version
nft -f - <<'N'
table ip q { chain p { type filter hook postrouting priority mangle; oifname "eth0" udp dport 53 meta mark set 3; } }
table ip6 q { chain p { type filter hook postrouting priority mangle; oifname "eth0" udp dport 53 meta mark set 3; } }
N
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 3 fw classid 1:1
tc filter add dev eth0 parent 1: protocol ipv6 prio 2 handle 3 fw classid 1:1
