#!/bin/sh
modprobe ifb numifbs=1
ip link set ifb0 up
tc qdisc del dev wan0 ingress 2>/dev/null
tc qdisc add dev wan0 handle ffff: ingress
tc filter add dev wan0 parent ffff: protocol all prio 1 matchall action mirred egress mirror dev ifb0
tc qdisc replace dev ifb0 root cake bandwidth 90mbit ingress
# expect: PS233 6
