#!/usr/bin/env bash
# marks are hexadecimal in nft, the class ids read as decimal
# expect: PS201 13
set -euo pipefail
tc qdisc del dev eth0 root 2>/dev/null || true
tc qdisc add dev eth0 root handle 1: htb default 99
tc class add dev eth0 parent 1: classid 1:1 htb rate 50mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 1mbit
tc class add dev eth0 parent 1:1 classid 1:11 htb rate 1mbit ceil 1mbit
tc class add dev eth0 parent 1:1 classid 1:99 htb rate 48mbit ceil 50mbit
iptables -t mangle -A FORWARD -s 10.0.0.10 -o eth0 -j MARK --set-mark 0x10
iptables -t mangle -A FORWARD -s 10.0.0.11 -o eth0 -j MARK --set-mark 0x11
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 10 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0x11 fw flowid 1:11
