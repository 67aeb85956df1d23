#!/bin/sh
# expect: PS250 5
ip link add vx0 type vxlan dstport 4789 external
ip link set vx0 up
tc qdisc add dev eth2 ingress
tc filter add dev eth2 ingress protocol ip flower dst_ip 10.1.1.0/24 action tunnel_key set src_ip 192.0.2.1 dst_ip 192.0.2.2 id 100 dst_port 4789 action mirred egress redirect dev vx0
