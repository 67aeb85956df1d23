#!/bin/bash
# expect: PS002 6
ip link add veth0 type veth peer name veth1
ip link set veth0 up
tc qdisc add dev veth0 clsact
tc filter add dev veth0 ingress protocol ip prio 1 flower skip_sw src_ip 10.10.0.2 action drop
