#!/bin/bash
# expect: PS218 6
sysctl -w net.ipv4.ip_forward=1
nft add table ip mangle
nft 'add chain ip mangle out { type route hook output priority -150; }'
nft add rule ip mangle out ip saddr 192.168.1.0/24 tcp dport 873 meta mark set 0x14
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip handle 0x14 fw flowid 1:3
