#!/bin/bash
# expect: PS004 6
ip link set eth1 up
ip addr add 10.1.0.2/24 dev eth1
ip nexthop add id 1 via 10.1.0.1 dev eth1
ip nexthop add id 9 group 1/7
tc qdisc replace dev eth1 root fq_codel
