#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 50mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 20mbit ceil 50mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 30mbit ceil 50mbit
nft add table inet qos
nft add chain inet qos out '{ type filter hook postrouting priority mangle; }'
nft add rule inet qos out oifname eth0 udp dport 5060 meta mark set 0x10
tc filter add dev eth0 parent 1: protocol all prio 1 handle 0x10 fw classid 1:10
