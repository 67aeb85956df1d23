#!/bin/sh
tc qdisc replace dev eth0 clsact
tc filter add dev eth0 ingress protocol ip prio 1 flower ip_proto udp dst_port 53 action police rate 1mbit burst 1kb conform-exceed drop
# expect: PS234 3
