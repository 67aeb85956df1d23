#!/bin/bash
# expect: PS331 5
tc qdisc replace dev eth0 ingress
tc filter add dev eth0 ingress prio 1 protocol all matchall action police rate 50mbit burst 128k conform-exceed drop/pipe
tc filter add dev eth0 egress prio 2 protocol ip flower ip_proto tcp src_port 9100 action skbedit priority 7
