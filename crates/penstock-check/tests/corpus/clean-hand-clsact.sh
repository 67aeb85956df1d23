#!/bin/bash
DEV=eno1
tc qdisc del dev $DEV clsact 2>/dev/null
tc qdisc add dev $DEV clsact
tc filter add dev $DEV ingress protocol ip prio 10 flower src_ip 203.0.113.0/24 action drop
tc filter add dev $DEV ingress protocol ip prio 20 flower ip_proto udp dst_port 53 action police rate 5mbit burst 64k conform-exceed drop/ok
tc filter add dev $DEV egress protocol ip prio 10 flower ip_proto tcp dst_port 22 action skbedit priority 6
