#!/bin/bash
# expect: PS338 6
tc qdisc del dev eth0 clsact 2>/dev/null
tc qdisc add dev eth0 clsact
# penstock-check: PS338
tc filter add dev eth0 ingress protocol ip prio 10 flower dst_ip 203.0.113.40 action nat egress 203.0.113.40/32 10.20.0.40
tc filter add dev eth0 egress protocol ip prio 10 flower src_ip 10.20.0.40 action nat egress 10.20.0.40/32 203.0.113.40
tc filter add dev eth0 ingress protocol ip prio 11 u32 match ip dst 203.0.113.41/32 action nat ingress 203.0.113.41 10.20.0.41
