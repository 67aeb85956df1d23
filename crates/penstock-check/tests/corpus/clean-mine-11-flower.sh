#!/bin/bash
# clsact: priorities set on the way out, a limit on the way in
D=eth0
tc qdisc del dev "$D" clsact 2>/dev/null || true
tc qdisc add dev "$D" clsact
tc filter add dev "$D" egress protocol ip pref 1 flower ip_proto tcp dst_port 22 action skbedit priority 6 pass
tc filter add dev "$D" egress protocol ip pref 2 flower ip_proto udp dst_port 53 action skbedit priority 6 pass
tc filter add dev "$D" ingress protocol ip pref 1 flower src_ip 198.51.100.0/24 action police rate 20mbit burst 100k conform-exceed drop/ok
tc qdisc replace dev "$D" root handle 1: prio
