#!/bin/bash
# expect: PS310 7
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 ingress
tc filter add dev eth0 parent ffff: protocol all matchall action mirred ingress redirect dev ifb0
tc qdisc replace dev ifb0 root cake bandwidth 20mbit
