#!/bin/bash
# copies
# expect: PS233 8
modprobe ifb
ip link set ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action mirred egress mirror dev ifb0
tc qdisc replace dev ifb0 root tbf rate 10mbit burst 20k latency 50ms
