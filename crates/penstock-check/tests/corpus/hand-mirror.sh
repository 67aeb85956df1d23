#!/bin/bash
ip link add ifb0 type ifb 2>/dev/null
ip link set ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc del dev ifb0 root 2>/dev/null
tc qdisc add dev eth0 ingress
tc filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action mirred egress mirror dev ifb0
tc qdisc add dev ifb0 root tbf rate 20mbit burst 40kb latency 50ms
# expect: PS233 7
