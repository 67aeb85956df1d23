#!/bin/bash
# expect: PS274 5
tc qdisc replace dev eth0 clsact
tc filter add dev eth0 ingress prio 1 protocol ip flower ip_proto icmp action drop
tc filter add dev eth0 ingress prio 2 protocol ipv6 flower ip_proto icmpv6 action drop
