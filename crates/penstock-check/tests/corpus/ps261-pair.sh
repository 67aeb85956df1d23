#!/bin/sh
IF=eth0
UP=18mbit
DOWN=90mbit
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc del dev $IF root 2>/dev/null
tc qdisc del dev $IF ingress 2>/dev/null
tc qdisc add dev $IF root cake bandwidth $UP nat dual-dsthost ingress ack-filter
tc qdisc add dev $IF handle ffff: ingress
tc filter add dev $IF parent ffff: protocol all matchall action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root cake bandwidth $DOWN nat dual-srchost ingress besteffort diffserv4
# expect: PS261 9
# expect: PS261 12
# expect: PS262 9
# expect: PS263 12
