#!/bin/bash
# sqm with cake in both directions
ip link show ifb0 >/dev/null 2>&1 || ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 ingress
tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev ifb0
tc qdisc replace dev ifb0 root cake bandwidth 45mbit ingress
tc qdisc replace dev eth0 root cake bandwidth 9mbit
