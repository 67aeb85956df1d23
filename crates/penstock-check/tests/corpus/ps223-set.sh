#!/bin/bash
# a set of hosts behind the other device
# expect: PS223 6
ipset create slow hash:ip -exist
ipset add slow 192.168.1.50
iptables -t mangle -A POSTROUTING -o eth0 -m set --match-set slow dst -j MARK --set-mark 9
iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
ip addr add 203.0.113.7/24 dev eth0
ip addr add 192.168.1.1/24 dev eth1
ip route add default via 203.0.113.1
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:9 htb rate 1mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 20mbit
tc filter add dev eth0 parent 1: protocol ip handle 9 fw classid 1:9
