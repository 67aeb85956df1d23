#!/bin/bash
WAN=eth0; LAN=eth1
iptables -t nat -A POSTROUTING -o $WAN -j MASQUERADE
tc qdisc replace dev $WAN root cake bandwidth 20mbit dual-srchost
ip link add ifb4eth0 type ifb
ip link set ifb4eth0 up
tc qdisc replace dev $WAN handle ffff: ingress
tc filter replace dev $WAN parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb4eth0
tc qdisc replace dev ifb4eth0 root cake bandwidth 100mbit ingress dual-dsthost nat
# expect: PS260 4
