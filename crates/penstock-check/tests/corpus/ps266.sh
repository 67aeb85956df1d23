#!/bin/sh
modprobe ifb numifbs=1
ip link set dev ifb0 up
iptables -t mangle -A PREROUTING -i eth0 -p udp --sport 5060 -j DSCP --set-dscp-class EF
tc qdisc replace dev eth0 handle ffff: ingress
tc filter replace dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev ifb0
tc qdisc replace dev ifb0 root cake bandwidth 90mbit ingress diffserv4
# expect: PS266 7
