#!/bin/bash
# a route with bits behind its prefix
# expect: PS004 4
ip route add 10.1.2.3/24 via 192.168.1.1 dev eth0
tc qdisc replace dev eth0 root fq_codel
