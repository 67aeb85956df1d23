#!/bin/bash
# packets go to ifb0, the shaper stands on ifb1
# expect: PS230 12
# expect: PS303 11
modprobe ifb numifbs=2
ip link set dev ifb0 up
ip link set dev ifb1 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc del dev ifb1 root 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb1 root handle 1: tbf rate 20mbit burst 32k latency 40ms
