#!/bin/bash
# expect: PS330 5
# expect: PS330 8
tc qdisc replace dev eth0 clsact
tc filter add dev eth0 ingress protocol ip prio 1 flower src_ip 10.0.0.0/8 action goto chain 20
tc filter add dev eth0 ingress protocol ip prio 2 flower src_ip 192.168.0.0/16 action goto chain 10
tc filter add dev eth0 ingress chain 10 protocol ip prio 1 flower ip_proto tcp dst_port 22 action drop
tc filter add dev eth0 ingress chain 2 protocol ip prio 1 flower ip_proto tcp dst_port 443 action drop
