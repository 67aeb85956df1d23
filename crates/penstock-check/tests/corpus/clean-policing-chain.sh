#!/bin/bash
# clsact
tc qdisc replace dev eth0 clsact
tc filter add dev eth0 ingress protocol ip prio 1 flower src_ip 10.0.0.0/8 action drop
tc filter add dev eth0 egress protocol ip prio 1 flower dst_ip 10.0.0.0/8 action drop
