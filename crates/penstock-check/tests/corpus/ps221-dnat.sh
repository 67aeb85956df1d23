#!/bin/bash
# expect: PS221 5
iptables -t nat -A PREROUTING -i eth0 -p tcp --dport 8080 -j DNAT --to-destination 192.168.1.20:80
tc qdisc replace dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip dst 192.168.1.20/32 action police rate 5mbit burst 64k conform-exceed drop
