#!/bin/bash
# expect: PS250 5
# penstock-check: PS250
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 clsact
tc filter add dev eth0 ingress protocol ip prio 1 flower ip_proto udp dst_port 123 action police rate 2mbit burst 64k conform-exceed drop
