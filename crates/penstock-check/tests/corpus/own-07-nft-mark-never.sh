#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 10mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0x11 fw flowid 1:10
nft add table inet mangle
nft add chain inet mangle post '{ type filter hook postrouting priority mangle; }'
nft add rule inet mangle post udp dport 5060 meta mark set 11
# expect: PS201 6
